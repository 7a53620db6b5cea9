"""The application: its routes, and what stands around all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio.to_thread
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware

from leakcap.server.api import api
from leakcap.server.assets import assets
from leakcap.server.audit_pages import auditing
from leakcap.server.custody_pages import custody
from leakcap.server.headers import UPLOADS, SecureHeaders, TooMuch
from leakcap.server.pages import pages
from leakcap.server.publish_pages import publishing
from leakcap.server.refusing import Refusing, answer_refused
from leakcap.server.register_pages import registering
from leakcap.server.settings import ServerSettings
from leakcap.server.state import ServerState
from leakcap.server.tour_pages import touring
from leakcap.server.work_pages import working
from leakcap.version import __version__

__all__ = ["create_app"]

THREADS = 120  # that wait for questions and passwords; how many are computed at a time is another limit


def create_app(settings: ServerSettings) -> FastAPI:
    """A server as an ASGI application."""
    state = ServerState(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        yield
        state.close()

    app = FastAPI(
        title="leakcap",
        version=__version__,
        description="Questions about private data, under one cap for all answers together.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # those pages load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.leakcap = state
    of_demo = (touring,) if settings.demo else ()
    for router in (api, pages, custody, registering, publishing, auditing, working, assets, *of_demo):
        app.router.routes.extend(router.routes)  # one flat list, which tests go through
    for kind in (RequestValidationError, HTTPException):
        app.add_exception_handler(kind, answer_refused)
    # The last one stands outermost.
    app.add_middleware(Refusing)
    app.add_middleware(TooMuch, settings=settings, uploads=UPLOADS)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(settings.hosts), www_redirect=False)
    app.add_middleware(SecureHeaders, settings=settings)
    return app
