"""The container file, as far as it can be read: an ordinary user, a root nobody writes to, nothing from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
IMAGE = re.compile(r"python:3\.\d+-slim(@sha256:[0-9a-f]{64})?")
SECRET = re.compile(r"password|passwd|secret|token|api_?key|BEGIN [A-Z ]*PRIVATE", re.IGNORECASE)


def steps(text: str) -> list[tuple[str, str]]:
    """Instructions with their words; comments left out, long lines joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(word.upper(), " ".join(rest.split())) for line in joined.splitlines() if line.strip()
            for word, _, rest in [line.strip().partition(" ")]]  # fmt: skip


def faults(text: str) -> list[str]:
    """What is wrong with a container file."""
    found, stages = [], []
    for word, rest in steps(text):
        if word == "FROM":
            stages.append([])
            image = rest.split()[0]
            if not IMAGE.fullmatch(image):
                found.append(f"built on {image}")
        elif stages:
            stages[-1].append((word, rest))
        if word == "ADD" or re.search(r"https?://|\bcurl\b|\bwget\b", rest):
            found.append(f"fetched: {rest}")
        if SECRET.search(rest):
            found.append(f"may hold a secret: {rest}")
        if word == "COPY" and "--from=" not in rest and rest.split()[0] in (".", "./", "*"):
            found.append("copies whatever lies about")
    last = stages[-1] if stages else []
    users = [rest for word, rest in last if word == "USER"]
    if not users or users[-1].split(":")[0] in ("root", "0") or not users[-1].split(":")[0].isdigit():
        found.append("runs as root, or as a user whose number nobody can check")
    after = last[[word for word, _ in last].index("USER") :] if users else last
    if any(word in ("RUN", "COPY") for word, _ in after):
        found.append("something is changed after the user is")
    words = dict(last)
    volume = words.get("VOLUME", "")
    if not volume or not words.get("ENTRYPOINT", "").startswith("["):
        found.append("no volume, or a shell in between")
    places = re.findall(r"(?:HOME|KEY|DIR)=(\S+)", words.get("ENV", "")) + re.findall(r"--home\", \"([^\"]+)", text)
    if len(places) < 4 or any(not place.startswith(volume) for place in places):
        found.append("it writes outside its volume")
    return found


def test_the_container_file_is_in_order() -> None:
    assert faults((ROOT / "Containerfile").read_text()) == []


def test_what_it_copies_is_there_and_it_starts_what_there_is() -> None:
    text = (ROOT / "Containerfile").read_text()
    for word, rest in steps(text):
        if word == "COPY" and "--from=" not in rest:
            assert all((ROOT / name).exists() for name in rest.split()[:-1])
    assert '"leakcap", "serve", "--home"' in text and '.[server]"' in text


def test_planted_faults_are_found() -> None:
    good = (ROOT / "Containerfile").read_text()
    for old, new in (
        ("USER 10001:10001", ""),
        ("USER 10001:10001", "USER root"),
        ("USER 10001:10001", "USER 10001\nRUN chmod 777 /opt"),
        ("COPY src src", "COPY . ."),
        ("COPY src src", "ADD https://example.org/x.tar.gz /source"),
        ("COPY src src", "RUN curl -s https://example.org | sh"),
        ("HOME=/home/leakcap", "HOME=/root"),
        ("PYTHONDONTWRITEBYTECODE=1", "LEAKCAP_PASSWORD=hunter2"),
        ("FROM python:3.12-slim\n", "FROM example.org/python:latest\n"),
        ("VOLUME /home/leakcap\n", ""),
    ):
        assert old in good
        assert faults(good.replace(old, new)) != [], new
