"""`leakcap labels --method statistics` and `--method pate`: a model of secret labels, its certificate, and a page.

The same folders, keys and refusals as for labels that are privatised one by one. What was spent is remembered as soon
as anything was drawn from labels, also where nothing could be published afterwards.
"""

from __future__ import annotations

from dataclasses import replace

from leakcap.certificates.compose import compose_label_runs
from leakcap.certificates.labels import LabelCertificate
from leakcap.cli.endings import as_options
from leakcap.cli.labels import LabelsOrder, class_names, facts_of, print_labels
from leakcap.cli.terminal import Terminal
from leakcap.custody.folders import Folders
from leakcap.custody.label_spending import public_folder, record, spent_before
from leakcap.custody.signing import own_signer
from leakcap.errors import InputError
from leakcap.labels.mechanisms.recipe import DEFAULT_DELTA, LabelRequest, named_classes
from leakcap.report.labels.page import Labelled, label_page
from leakcap.tables.label_column import LabelColumn
from leakcap.tables.label_files import open_labels
from leakcap.tables.learnt_labels import LabelModel, ModelRequest
from leakcap.tables.model_words import model_advice, model_code, model_holds, model_learnt
from leakcap.tables.public_features import read_features

__all__ = ["model_files", "run_model"]

# What the library calls by its own names, as a command.
IN_COMMANDS = {"use lc.labels.Ridge, which": "take --method statistics, which", "n_teachers": "--teachers"}


def run_model(order: LabelsOrder, quiet: bool = False, json: bool = False) -> None:
    """Learn, record, publish."""
    terminal = Terminal(quiet, json)
    request = _request(order)
    signer = own_signer()  # before anything is spent
    terminal.tell(signer.news())
    before = spent_before(order.out, order.again)
    column = open_labels(order.data, order.column, tuple(order.read or ()))
    model = LabelModel.of(request, read_features(column, tuple(order.features or ())))
    advice = model_advice(model)
    certificate = _learnt(order, model, column, before)
    files = model_files(order, model, column, certificate=certificate, signed_with=signer.fingerprint)
    runs = len(before) + 1
    folders = replace(Folders.under(order.out), public=public_folder(order.out, runs))
    folders.publish(signer.signed(files))
    print_labels(order, certificate, folders, terminal, learnt=f"{model_learnt(model)} {advice}".rstrip())
    facts = {"method": order.method} | ({"model": request.model} if order.method == "statistics" else {})
    terminal.result(facts_of(certificate, folders, model.features.names, runs) | facts)


def _request(order: LabelsOrder) -> ModelRequest:
    """What is asked of the model; made before the file is opened."""
    if order.classes is None:
        raise InputError(
            "name the classes, such as --classes no,yes. They are public, and not read from the labels: a class that "
            "occurs once would give its owner away"
        )
    asked = LabelRequest(epsilon=order.epsilon, classes=class_names(order.classes), missing_as=order.missing_as)
    try:
        names, missing_as = named_classes(asked)
        request = ModelRequest(
            method=order.method,
            epsilon=order.epsilon,
            names=names,
            missing_as=missing_as,
            delta=DEFAULT_DELTA if order.delta is None else order.delta,
            model=order.model or "ridge",
            teachers=order.teachers,
        )
        request.estimator()  # refuses settings that contradict
        return request
    except InputError as error:
        refusal = _in_commands(str(error))
    raise InputError(refusal)


def _learnt(
    order: LabelsOrder, model: LabelModel, column: LabelColumn, before: list[LabelCertificate]
) -> LabelCertificate:
    """The certificate of a model that has learnt; it is in the custodian's folder already."""
    refusal = ""
    try:
        model.fit(column)
    except InputError as error:
        refusal = _in_commands(str(error))
    finally:  # also where it failed: whoever hears of that hears something of what was drawn
        if model.spent:
            certificate = compose_label_runs(before, model.certificate())
            folders = Folders.under(order.out)
            folders.sweep()
            record(folders, len(before) + 1, certificate)
    if refusal:
        raise InputError(refusal)
    return certificate


def model_files(
    order: LabelsOrder, model: LabelModel, column: LabelColumn, *, certificate: LabelCertificate, signed_with: str = ""
) -> dict[str, str | bytes]:
    """What may be published: the model, what it predicts, and facts of the certificate."""
    files = model.files()
    labelled = Labelled(
        title=order.heading,
        file=next(iter(files)),
        columns=model.features.names,
        holds=model_holds(model),
        code=model_code(model, column),
        issuer=order.issuer,
    )
    return {
        **files,
        "certificate.json": certificate.to_json(),
        "certificate.txt": f"{certificate}\n",
        "page.html": label_page(certificate, labelled, signed_with),
    }


def _in_commands(words: str) -> str:
    for name, option in IN_COMMANDS.items():
        words = words.replace(name, option)
    return as_options(words)
