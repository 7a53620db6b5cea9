"""A release as one JSON file, and back: its value in the form that the function gave, exact numbers, error bars.

Only plain values go this way: numbers, text, lists, dicts, arrays, tables. A model leaves in a file of its own, which
only pickle can read: reading it runs what is in it, so that whoever loads it has to say that they trust it.
"""

from __future__ import annotations

import hashlib
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from leakcap.certificates.release import Certificate
from leakcap.certificates.signatures import LIST, digests_in
from leakcap.errors import InputError
from leakcap.planning.released import Release
from leakcap.simulate.estimators import is_estimator

__all__ = ["MODEL", "RELEASE", "load", "public_folder", "release_json"]

RELEASE, MODEL, CERTIFICATE = "release.json", "model.pkl", "certificate.json"
FORM = 1  # of the file
UNTRUSTED = (
    "the value is a model, in model.pkl: reading that file runs what is in it. If you trust where it comes from, say "
    "so: leakcap.load(folder, trust=True)"
)
OF_ITS_OWN = "the value was of a kind of its own, which is not kept: these are its numbers"


def release_json(release: Release) -> str:
    """All of a release but its certificate."""
    try:
        value = _encoded(release.value)
    except TypeError:
        value = {"file": MODEL if is_estimator(release.value) else ""}
    return json.dumps(
        {
            "form": FORM,
            "value": value,
            "names": release.names,
            "outputs": release.outputs.tolist(),
            "widths": [[level, width.tolist()] for level, width in release.widths],
            "labels": release.labels,
            "notes": release.notes,
            "not_rebuilt": release.not_rebuilt,
        },
        ensure_ascii=False,
    )


def load(folder: Any, *, trust: bool = False) -> Release:
    """A release from the folder that `release.save(folder)` or `leakcap release` wrote.

    Args:
        folder: that folder, or the `public` one in it.
        trust: whether to read a model, too. Its file is read with pickle, which runs what is in it: only say so of
            files whose source you trust. Without it, `value` is the released numbers of the model, flattened.

    Returns:
        The release, with its value, error bars and certificate.

    Raises:
        InputError: there is no release in the folder, a file is damaged, or differs from what a signed list
            (SHA256SUMS) in the folder says. Who signed it, `leakcap check --signer` tells.

    Examples:
        >>> import tempfile
        >>> import numpy as np
        >>> import leakcap as lc
        >>> ages = np.random.default_rng(0).integers(20, 80, 100)
        >>> folder = tempfile.mkdtemp() + "/ages"
        >>> release = lc.release(lc.stats.mean, ages, cap=0.6)
        >>> release.save(folder)
        >>> bool(lc.load(folder).value == release.value)
        True
    """
    place = public_folder(Path(folder))
    held = _read(place / RELEASE)
    certificate = Certificate.from_json(_listed(place / CERTIFICATE).decode())
    if held.get("form") != FORM:
        raise InputError(f"{place / RELEASE} is of a later version of leakcap: upgrade to read it")
    numbers = np.asarray(held["outputs"], dtype=np.float64)
    made = Release(
        value=numbers,
        certificate=certificate,
        names=tuple(held["names"]),
        _vector=numbers,
        _widths=tuple((float(level), np.asarray(width, dtype=np.float64)) for level, width in held["widths"]),
        not_rebuilt=held["not_rebuilt"],
        labels=tuple(held["labels"]),
        notes=tuple(held["notes"]),
    )
    if held["value"] == {"file": ""}:
        return replace(made, not_rebuilt=OF_ITS_OWN)
    if held["value"] != {"file": MODEL}:
        return replace(made, value=_decoded(held["value"]))
    if not trust:
        return replace(made, not_rebuilt=UNTRUSTED)
    return replace(made, value=pickle.loads(_listed(place / MODEL)))


def public_folder(folder: Path) -> Path:
    """Where the public files of a release lie, from its folder or that one itself."""
    for place in (folder / "public", folder):
        if (place / CERTIFICATE).is_file() and (place / RELEASE).is_file():
            return place
    if (folder / "public" / CERTIFICATE).is_file() or (folder / CERTIFICATE).is_file():
        raise InputError(f"{folder} was written by an earlier version: read answer.json and certificate.json in it")
    raise InputError(f"there is no release in {folder}: give the folder that release.save() or --out named")


def _listed(path: Path) -> bytes:
    """The bytes of a file, which are those that the list of the folder has, where there is one."""
    content, names = path.read_bytes(), path.parent / LIST
    if names.exists() and digests_in(names.read_bytes()).get(path.name) != hashlib.sha256(content).hexdigest():
        raise InputError(f"{path} is not the file that {LIST} lists: get the folder again from whoever published it")
    return content


def _read(path: Path) -> Any:
    content = _listed(path)
    try:
        return json.loads(content)
    except ValueError:
        pass
    raise InputError(f"{path} is damaged: get the folder again from whoever published it")


def _encoded(value: Any) -> Any:
    """A value as JSON; TypeError for what only pickle can keep."""
    if value is None or isinstance(value, (bool, str)) or type(value) in (int, float):
        return value if not isinstance(value, float) or np.isfinite(value) else {"number": repr(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU":
        return {"array": value.ravel().tolist(), "shape": value.shape, "dtype": value.dtype.str}
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return {"scalar": value.item(), "dtype": value.dtype.str}
    if type(value) in (list, tuple):
        return {type(value).__name__: [_encoded(one) for one in value]}
    if type(value) is dict:
        return {"dict": [[_encoded(key), _encoded(one)] for key, one in value.items()]}
    kind = f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"
    if kind in ("pandas.Series", "pandas.DataFrame"):
        parts = {"values": _encoded(value.to_numpy()), "index": _index(value.index)}
        if kind == "pandas.Series":
            return {kind: {**parts, "name": _encoded(value.name)}}
        return {kind: {**parts, "columns": _index(value.columns)}}
    if kind in ("polars.Series", "polars.DataFrame"):
        columns = [value] if kind == "polars.Series" else value.get_columns()
        return {kind: [[one.name, _encoded(one.to_numpy())] for one in columns]}
    raise TypeError(kind)


def _index(index: Any) -> Any:
    levels = [[_encoded(one) for one in index.get_level_values(i).tolist()] for i in range(index.nlevels)]
    return {"levels": levels, "names": [_encoded(name) for name in index.names]}


def _decoded(held: Any) -> Any:
    if not isinstance(held, dict):
        return held
    ((kind, inner),) = [pair for pair in held.items() if pair[0] not in ("shape", "dtype")]
    if kind == "number":
        return float(inner)
    if kind == "array":
        return np.asarray(inner, dtype=np.dtype(held["dtype"])).reshape(held["shape"])
    if kind == "scalar":
        return np.dtype(held["dtype"]).type(inner)
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(_decoded(one) for one in inner)
    if kind == "dict":
        return {_decoded(key): _decoded(one) for key, one in inner}
    library, _, name = kind.partition(".")
    if library == "polars":
        import polars

        columns = [polars.Series(title, _decoded(values)) for title, values in inner]
        return columns[0] if name == "Series" else polars.DataFrame(columns)
    import pandas

    values, index = _decoded(inner["values"]), _axis(inner["index"])
    if name == "Series":
        return pandas.Series(values, index=index, name=_decoded(inner["name"]))
    return pandas.DataFrame(values, index=index, columns=_axis(inner["columns"]))


def _axis(held: Any) -> Any:
    import pandas

    levels = [[_decoded(one) for one in level] for level in held["levels"]]
    names = [_decoded(name) for name in held["names"]]
    if len(levels) > 1:
        return pandas.MultiIndex.from_arrays(levels, names=names)
    return pandas.Index(levels[0], name=names[0])
