"""What every response carries, after OWASP's list of secure headers, and what no request may exceed."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from leakcap.server.refusals import Refusal
from leakcap.server.settings import ServerSettings

__all__ = ["SECURE", "UPLOADS", "SecureHeaders", "TooMuch"]

UPLOADS = frozenset({"/custody/register", "/custody/publish"})  # where large bodies are read, for custodians alone

Scope = MutableMapping[str, Any]
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SECURE = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "X-Permitted-Cross-Domain-Policies": "none",
}
KEPT_NOWHERE = "no-store"
ENCRYPTED = ("Strict-Transport-Security", "max-age=31536000; includeSubDomains")
TOO_LARGE = "That is more than the server takes at a time: send less."


class SecureHeaders:
    """Puts the headers on every response, also on errors."""

    def __init__(self, app: Any, settings: ServerSettings) -> None:
        self.app = app
        told = {**SECURE, "Cache-Control": KEPT_NOWHERE} | (dict([ENCRYPTED]) if settings.encrypted else {})
        self.headers = [(name.lower().encode(), value.encode()) for name, value in told.items()]

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(one for one in self.headers if one[0] not in own)]
            await send(message)

        await self.app(scope, receive, sending)


class TooMuch:
    """Stops reading a body that is longer than allowed, whatever length it announces."""

    def __init__(self, app: Any, settings: ServerSettings, uploads: frozenset[str]) -> None:
        self.app, self.limits, self.uploads = app, settings.limits, uploads

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        most = self.limits.upload if scope["path"] in self.uploads else self.limits.body
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        read = 0

        async def receiving() -> Any:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > most:
                raise Refusal(413, TOO_LARGE)
            return message

        if not announced.isdigit() or int(announced) > most:
            scope["leakcap too large"] = True
        await self.app(scope, receiving, send)
