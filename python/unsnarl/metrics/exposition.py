"""Metric families as Prometheus' text format, of one process or merged from several.

Must never put two families of one name into a text: a reader rejects it. Imports nothing, as ``figures``.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from unsnarl.metrics.figures import Family

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The media type of Prometheus' text exposition format."""


def text_of(families: "Iterable[Family]", **labels: str) -> str:
    """Return families as text, with more ``labels`` for each sample."""
    lines: list[str] = []
    for family in families:
        name = f"{family.name}_total" if family.kind == "counter" else family.name
        lines += [f"# HELP {name} {family.purpose}", f"# TYPE {name} {family.kind}"]
        for sample in family.samples:
            lines.append(f"{family.name}{sample.suffix}{_braced({**labels, **sample.labels})} {sample.value!r}")
    return "".join(f"{line}\n" for line in lines)


def _braced(labels: dict[str, str]) -> str:
    pairs = [f'{name}="{_escaped(value)}"' for name, value in labels.items()]
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def merged(texts: "Iterable[str]") -> str:
    """Return one text with the families of several; their samples must differ in a label."""
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for text in texts:
        name = ""
        is_first = True
        for line in text.splitlines():
            if line.startswith("# HELP "):
                name = line.split(" ", 3)[2]
                is_first = name not in heads
            if not line.startswith("#"):
                samples.setdefault(name, []).append(line)
            elif is_first:
                heads.setdefault(name, []).append(line)
    return "".join(f"{line}\n" for name in heads for line in (*heads[name], *samples.get(name, [])))
