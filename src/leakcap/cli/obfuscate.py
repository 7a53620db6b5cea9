"""`leakcap obfuscate`: an encoded set for the server, a sealed key for the owner, and predictions with both."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from leakcap.cli.limits import limits
from leakcap.cli.terminal import Terminal, plain
from leakcap.custody.folders import Folders
from leakcap.custody.ledger import default_place
from leakcap.custody.private_files import private_folder, write_private
from leakcap.custody.signing import own_signer
from leakcap.errors import AlreadyReleased, InputError
from leakcap.obfuscation import Encoder, Key
from leakcap.obfuscation.network import LayeredModel, advice
from leakcap.report.obfuscation.page import encoding_page
from leakcap.tables.encodable import PictureRecipe, TableRecipe, recipe_of
from leakcap.tables.files import open_table
from leakcap.tables.reading import Reading

__all__ = ["EncodeOrder", "run_encode", "run_predict"]

KEY_FILE = "encoding.key"
MASKED = 500  # columns, where rows have as many
README = "OWNER ONLY. The key without which the model says nothing: keep a copy, and never send it to the server.\n"


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
        raise InputError("say --cap membership=0.60, or --noise NUMBER, of which nothing is claimed")
    signer = own_signer()  # before anything is spent
    terminal.tell(signer.news())
    recipe, rows, labels, source, facts = _pool(order)
    with terminal.heeding(), terminal.watching() as watch:
        encoder = Encoder(
            min(MASKED, rows.shape[1]) if order.mask_dim is None else order.mask_dim,
            mix=order.mix,
            rows_sampled=order.rows_sampled,
            rows_released=order.rows_released,
            noise=order.noise,
            cap=None if order.cap is None else limits([order.cap])[0],
            whiten=order.whiten,
            draws=order.draws,
            backend=order.backend,
            progress=watch,
            ledger=order.ledger or default_place(),
            name=order.name,
            pool_public=facts,
        )
        encoded, shares = encoder.encode(rows, labels, source=source)
    certificate = encoder.certificate
    private_folder(folders.custodian)
    replace(encoder.key, recipe=recipe.to_text()).save(folders.custodian / KEY_FILE)
    folders.keep("README.txt", README)
    folders.publish(
        signer.signed(
            {
                "features.npy": _npy(encoded),
                "labels.npy": _npy(shares),
                "network.txt": advice(certificate, shares.shape[1]),
                "certificate.json": certificate.to_json(),
                "certificate.txt": f"{certificate}\n",
                "page.html": encoding_page(certificate, order.title, signer.fingerprint),
            }
        )
    )
    for note in encoder.notes:
        terminal.note(note)
    terminal.heading(order.title or "An encoded set")
    terminal.say(plain(certificate.how()))
    terminal.say(plain(str(certificate).partition("\n\n")[0].replace("\n", " ")))
    terminal.say(f"[bold]{plain(str(folders.public))}[/bold]: for the server")
    terminal.say(f"[bold]{plain(str(folders.custodian))}[/bold]: for you alone. Without the key the model is lost")
    terminal.result(
        {
            "server": str(folders.public),
            "owner": str(folders.custodian),
            "kind": certificate.kind,
            "guarantee": certificate.is_guarantee,
            "noise": certificate.noise,
            "rows_sampled": certificate.rows_sampled,
            "rows_released": certificate.rows_released,
            "mix": certificate.mix,
            "mask_dim": certificate.mask_dim,
            "notes": list(encoder.notes),
        }
    )


def run_predict(model: Path, data: Path, key: Path, *, out: Path, quiet: bool = False, json: bool = False) -> None:
    """Predict new rows at the owner's side, into a file of the owner's alone."""
    terminal = Terminal(quiet, json)
    held = Key.load(key)
    rows = recipe_of(held.recipe).queries(data)
    labels = held.predict(LayeredModel.load(model), rows)
    lines = "".join(f"{_cell(str(one))}\n" for one in labels.tolist())
    write_private(out, f"prediction\n{lines}".encode())
    terminal.say(f"{len(labels):,} predictions in [bold]{plain(str(out))}[/bold], for you alone")
    terminal.result({"rows": len(labels), "out": str(out)})


def _pool(order: EncodeOrder) -> tuple[Any, Any, Any, Any, tuple[str, ...]]:
    """The recipe, rows, labels, what they were made of, and the facts of the pool that the recipe took."""
    if order.embedding is not None:
        if order.label is not None or order.bounds or order.levels:
            raise InputError("--label, --bounds and --levels are for tables: pictures lie in folders by class")
        pictures = PictureRecipe(order.embedding)
        rows, labels = pictures.pool(order.data)
        return pictures, rows, labels, rows, ()
    if order.label is None:
        raise InputError("say which column holds the classes, --label NAME; for a folder of pictures --embedding")
    file = open_table(order.data, Reading.of(order.read))
    recipe, table, facts = TableRecipe.of(file, order.label, bounds=order.bounds, levels=order.levels, read=order.read)
    return recipe, recipe.rows(table), recipe.labels(table), table, facts


def _npy(array: Any) -> bytes:
    held = io.BytesIO()
    np.save(held, array, allow_pickle=False)
    return held.getvalue()


def _cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(one in text for one in ',"\n\r') else text
