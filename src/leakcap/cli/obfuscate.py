"""`leakcap obfuscate`: an encoded set for the server, a sealed key for the owner, and predictions with both."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from leakcap.certificates.obfuscation import ObfuscationCertificate, UnclaimedEncoding
from leakcap.certificates.signatures import list_of_files
from leakcap.cli.limits import limits
from leakcap.cli.terminal import Terminal, plain
from leakcap.convert import percent_up
from leakcap.custody.folders import Folders
from leakcap.custody.ledger import default_place
from leakcap.custody.private_files import private_folder, write_private
from leakcap.custody.signing import own_signer
from leakcap.errors import AlreadyReleased, InputError
from leakcap.obfuscation import Encoder, Key
from leakcap.obfuscation.network import LayeredModel, advice
from leakcap.report.obfuscation.owner import owner_page
from leakcap.report.obfuscation.page import encoding_page
from leakcap.report.obfuscation.rows_shown import EncodedRows, PoolRows, first_of_each
from leakcap.tables.encodable import PictureRecipe, TableRecipe, known_by, recipe_of
from leakcap.tables.files import open_table
from leakcap.tables.reading import Reading

__all__ = ["EncodeOrder", "run_encode", "run_predict"]

KEY_FILE = "encoding.key"
PAGE = "before-and-after.html"
SENT = "sent.sha256"  # digests of what lies in server/: nobody but the owner can change both
MASKED = 500  # columns, where rows have as many
README = """OWNER ONLY. Nothing in this folder is for the server.

encoding.key            the key without which the model says nothing: keep a copy
before-and-after.html   some of your rows, what the server gets of them, and what an attacker can learn
sent.sha256             digests of what was sent: leakcap obfuscate check compares them
"""


@dataclass(frozen=True, kw_only=True)
class EncodeOrder:
    """What is asked on the command line."""

    data: Path
    out: Path
    label: str | None = None
    embedding: str | None = None
    cap: str | None = None
    noise: float | None = None
    mask_dim: int | None = None
    mix: int | None = None
    rows_sampled: int | None = None
    rows_released: int = 2000
    blocks: str | None = None
    whiten: int | None = None
    draws: int = 1024
    backend: str | None = None
    bounds: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    ledger: str | None = None
    name: str | None = None
    title: str = ""


def run_encode(order: EncodeOrder, quiet: bool = False, json: bool = False) -> None:
    """Encode, keep the key, then publish."""
    terminal = Terminal(quiet, json)
    folders = Folders(order.out / "server", order.out / "owner")
    if folders.public.exists() or (folders.custodian / KEY_FILE).exists():
        raise AlreadyReleased(f"{order.out} holds an encoded set or its key: nothing was done. Choose another --out")
    if (order.cap is None) == (order.noise is None):
        raise InputError(
            "say --cap membership=0.60, which finds the least noise that keeps it, or --noise NUMBER, which is "
            "certified for what it is worth: one of them"
        )
    grid = _grid(order.blocks)
    signer = own_signer()  # before anything is spent
    terminal.tell(signer.news())
    pool = _pool(order)
    with terminal.heeding(), terminal.watching() as watch:
        encoder = Encoder(
            _mask_dim(pool.rows, grid) if order.mask_dim is None else order.mask_dim,
            mix=order.mix,
            rows_sampled=order.rows_sampled,
            rows_released=order.rows_released,
            noise=order.noise,
            cap=None if order.cap is None else limits([order.cap])[0],
            blocks=grid if min(grid) > 1 else max(grid),
            whiten=order.whiten,
            draws=order.draws,
            backend=order.backend,
            progress=watch,
            ledger=order.ledger or default_place(),
            name=order.name,
            pool_public=pool.facts,
        )
        encoded, shares = encoder.encode(pool.rows, pool.labels, source=pool.source)
    certificate = encoder.certificate
    private_folder(folders.custodian)
    replace(encoder.key, recipe=pool.recipe.to_text()).save(folders.custodian / KEY_FILE)
    folders.keep("README.txt", README)
    files = signer.signed(
        {
            "features.npy": _npy(encoded),
            "labels.npy": _npy(shares),
            "network.txt": advice(certificate, shares.shape[1]),
            "certificate.json": certificate.to_json(),
            "certificate.txt": f"{certificate}\n",
            "page.html": encoding_page(certificate, order.title, signer.fingerprint),
        }
    )
    folders.keep(SENT, list_of_files(_in_bytes(files)))
    folders.publish(files)
    # Last: were it to fail, nothing that was paid for would be lost.
    folders.keep(PAGE, owner_page(certificate, pool.shown, EncodedRows.of(encoded, shares, grid), order.title))
    for note in encoder.notes:
        terminal.note(note)
    terminal.heading(order.title or "An encoded set")
    terminal.say(plain(certificate.how()))
    terminal.say(plain(str(certificate).partition("\n\n")[0].replace("\n", " ")))
    figures = _figures(certificate)
    if figures:
        terminal.say(
            f"Whether a row was drawn is guessed right at most {percent_up(figures['membership_success'])} of the time "
            f"about the worst row, {percent_up(figures['mean_success'])} on average, with "
            f"confidence 1 - {1 - figures['confidence']:.1g}"
        )
    terminal.say(f"[bold]{plain(str(folders.public))}[/bold]: for the server")
    terminal.say(f"[bold]{plain(str(folders.custodian))}[/bold]: for you alone. Without the key the model is lost")
    terminal.say(f"[bold]{plain(str(folders.custodian / PAGE))}[/bold]: what the server gets of your rows")
    terminal.result(
        {
            "server": str(folders.public),
            "owner": str(folders.custodian),
            "page": str(folders.custodian / PAGE),
            "kind": certificate.kind,
            "guarantee": certificate.is_guarantee,
            **figures,
            "noise": certificate.noise,
            "rows_sampled": certificate.rows_sampled,
            "rows_released": certificate.rows_released,
            "mix": certificate.mix,
            "mask_dim": certificate.mask_dim,
            "notes": list(encoder.notes),
        }
    )


def _figures(certificate: ObfuscationCertificate | UnclaimedEncoding) -> dict[str, float]:
    """What is certified about a row; nothing where nothing is."""
    if not isinstance(certificate, ObfuscationCertificate):
        return {}
    return {name: getattr(certificate, name) for name in ("membership_success", "mean_success", "confidence")}


def run_predict(model: Path, data: Path, key: Path, *, out: Path, quiet: bool = False, json: bool = False) -> None:
    """Predict new rows at the owner's side, into a file of the owner's alone."""
    terminal = Terminal(quiet, json)
    held = Key.load(key)
    recipe = recipe_of(held.recipe)
    labels = held.predict(LayeredModel.load(model), recipe.queries(data))
    columns = {"prediction": [str(one) for one in labels.tolist()]}
    if isinstance(recipe, PictureRecipe):
        columns = {"file": [one.relative_to(data).as_posix() for one in recipe.files(data)], **columns}
    lines = [",".join(map(_cell, cells)) for cells in (tuple(columns), *zip(*columns.values(), strict=True))]
    write_private(out, "".join(f"{line}\n" for line in lines).encode())
    terminal.say(f"{len(labels):,} predictions in [bold]{plain(str(out))}[/bold], for you alone")
    terminal.result({"rows": len(labels), "out": str(out)})


@dataclass(frozen=True)
class _GivenPool:
    """The rows of a pool, and what they were made of."""

    recipe: TableRecipe | PictureRecipe
    rows: Any
    labels: Any
    source: Any
    facts: tuple[str, ...]  # of the pool that the recipe took
    shown: PoolRows


def _pool(order: EncodeOrder) -> _GivenPool:
    if order.embedding is not None:
        if order.label is not None or order.bounds or order.levels:
            raise InputError("--label, --bounds and --levels are for tables: pictures lie in folders by class")
        pictures = PictureRecipe(order.embedding)
        rows, labels, files = pictures.pool(order.data)
        shown = PoolRows.of_pictures(files, rows, labels, first_of_each(labels))
        return _GivenPool(pictures, rows, labels, source=known_by(files), facts=(), shown=shown)
    if order.label is None:
        raise InputError("say which column holds the classes, --label NAME; for a folder of pictures --embedding")
    file = open_table(order.data, Reading.of(order.read))
    recipe, table, facts = TableRecipe.of(file, order.label, bounds=order.bounds, levels=order.levels, read=order.read)
    labels = recipe.labels(table)
    shown = PoolRows.of_table(table, recipe.label, first_of_each(labels))
    return _GivenPool(recipe, recipe.rows(table), labels, source=table, facts=facts, shown=shown)


def _grid(words: str | None) -> tuple[int, int]:
    """How many blocks lie down and across; a number alone cuts a row into pieces of one after the other."""
    try:
        found = tuple(int(word) for word in (words or "1").split(","))
    except ValueError:
        found = ()
    if len(found) not in (1, 2) or min(found) < 1:
        raise InputError("--blocks is a number, or for pictures two: --blocks 4,4 for patches down and across")
    return (1, found[0]) if len(found) == 1 else (found[0], found[1])


def _mask_dim(rows: Any, grid: tuple[int, int]) -> int:
    """As many columns as rows have, at most 500, and as many in every block."""
    count = grid[0] * grid[1]
    return max(count, min(MASKED, int(np.prod(rows.shape[1:]))) // count * count)


def _in_bytes(files: Mapping[str, str | bytes]) -> dict[str, bytes]:
    return {name: one.encode() if isinstance(one, str) else one for name, one in files.items()}


def _npy(array: Any) -> bytes:
    held = io.BytesIO()
    np.save(held, array, allow_pickle=False)
    return held.getvalue()


def _cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(one in text for one in ',"\n\r') else text
