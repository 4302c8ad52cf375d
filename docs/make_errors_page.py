#!/usr/bin/env python3
"""Makes docs/errors.md from the sources: every message that nsp can end with, its cause, and what to do.

    docs/make_errors_page.py            writes the page
    docs/make_errors_page.py --check    ends with 1 if the page does not agree with the sources (a test does this)

A message is "WHAT. WHY. WHAT TO DO." in one `Error(ErrorKind::kind, text)`. Texts are found in the sources, not in a running
program: string literals are kept and everything between them becomes a word in <angle brackets>. A function that only builds a
text from its parameters is followed to its calls.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ["core", "comm", "io", "plugins"]
EXIT = {"usage": 2, "plugin": 2, "does_not_fit": 3, "input": 4, "diverged": 5, "io": 1, "memory": 1, "device": 1, "comm": 1, "inconsistent": 1}
TITLES = {
    2: "Exit code 2: command line, configuration, plug-ins",
    3: "Exit code 3: the plan does not fit",
    4: "Exit code 4: data, model files, checkpoints",
    5: "Exit code 5: training diverged",
    1: "Exit code 1: files, memory, devices, communication",
}
HEAD = """# Messages

Every error is printed once, on standard error, as `nsp_app: error: WHAT. WHY. WHAT TO DO.`, with rank and host where they matter. This
page lists all of them, by exit code: look for the words that do not stand in <angle brackets>. It is made from the sources by
`docs/make_errors_page.py`, and a test fails when the two disagree.

Not in the tables:

* `communication did not get on for comm.timeout ...`, exit code 6: a collective took longer. The text names the call, the communicator
  and the ranks that did not come. Look at those ranks' hosts first: a process that was stopped or killed, a host that swaps, a cut
  cable. If all are well and the job is only slow, raise `--comm.timeout`. The last checkpoint is good: start the same command again.
* exit code 75, without an error: stopped early with a good checkpoint, by a signal, `--train.max_hours` or the file `STOP`. Start the
  same command again.
* `a requirement of nsp does not hold: ...`, exit code 1: a bug in nsp or in a plug-in. Please report it with the whole line.
* what a backend says about its device, exit code 1: the text names the backend and the op.
"""

LITERAL = re.compile(r'(?:R"\((?P<raw>.*?)\)"|"(?P<text>(?:[^"\\]|\\.)*)")', re.S)
CALL = re.compile(r"\bError\(\s*ErrorKind::(\w+)\s*,")
FUNCTION = re.compile(r"\n(?:\[\[noreturn\]\] )?(?:static )?(?:[\w:<>&*]+ )+(?:\w+::)?(\w+)\(([^;{}]*)\)[^;{}]*\{")


def closing(source, start):
    """Index of the bracket that closes the one before `start`."""
    depth, i = 1, start
    while depth:
        c = source[i]
        if c == '"':
            i = LITERAL.match(source, i).end() - 1
        elif c == "'":
            i += 3 if source[i + 1] == "\\" else 2
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        i += 1
    return i - 1


def arguments(text):
    """The top-level arguments of a call."""
    out, depth, last, i = [], 0, 0, 0
    while i < len(text):
        c = text[i]
        if c == '"':
            i = LITERAL.match(text, i).end() - 1
        elif c == "'":
            i += 3 if text[i + 1] == "\\" else 2
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and depth == 0:
            out.append(text[last:i].strip())
            last = i + 1
        i += 1
    return out + [text[last:].strip()]


def word_for(code):
    """A word for an expression between literals; None where it adds nothing."""
    code = re.sub(r"\b(std::)?(to_string|string|string_view)\(", "(", code)
    code = re.sub(r"\bstatic_cast<[^>]*>|\.c_str\(\)|\.what\(\)|\.string\(\)|\.text\(\)", "", code)
    code = code.replace("+", " ").strip()
    if "?" in code and re.fullmatch(r"[\s\S]*\?\s*", code):
        return "?"
    if re.fullmatch(r"[():\s]*:[():\s]*", code):
        return ":"
    names = re.findall(r"[A-Za-z_]\w*", code)
    names = [n for n in names if n not in ("std", "size_t", "int64_t", "const", "true", "false", "nsp")]
    return "<" + names[-1].strip("_").replace("_", " ") + ">" if names else None


def text_of(expression, replace=None):
    """The message an expression builds; replace: parameter name -> text."""
    if replace and expression.strip() in replace:
        return replace[expression.strip()]
    out, last = "", 0
    pieces = [(m.start(), m.end(), m.group("raw") if m.group("raw") is not None else m.group("text")) for m in LITERAL.finditer(expression)]
    for start, end, literal in pieces + [(len(expression), len(expression), "")]:
        between = expression[last:start].strip()
        last = end
        if between:
            bare = re.sub(r"^[\s+]+|[\s+]+$", "", between)
            if replace and bare in replace:
                out += replace[bare]
            elif replace and any(re.search(r"\b%s\b" % re.escape(name), bare) for name in replace) and "(" not in bare:
                for part in bare.split("+"):
                    out += replace.get(part.strip(), word_for(part) or "")
            else:
                word = word_for(between)
                out += {None: "", "?": "", ":": " / "}.get(word, word)
        out += literal
    out = out.replace('\\"', '"').replace("\\\\", "\\").replace("\\n", " ").replace("\\t", " ")
    return re.sub(r"\s+", " ", out).strip()


def literal_words(text):
    return len(re.findall(r"[A-Za-z]{2,}", re.sub(r"<[^>]*>", "", text)))


def enclosing(source, at):
    """(name, parameter names) of the function that holds a position."""
    found = None
    for m in FUNCTION.finditer(source, 0, at):
        found = m
    if not found:
        return None, []
    names = []
    for parameter in arguments(found.group(2)):
        m = re.search(r"(\w+)\s*(?:=.*)?$", parameter)
        if m:
            names.append(m.group(1))
    return found.group(1), names


def messages_of(path):
    source = "\n" + re.sub(r"(?m)//.*$", "", path.read_text())
    found = []
    for m in CALL.finditer(source):
        kind = m.group(1)
        if kind == "internal":
            continue
        expression = source[m.end() : closing(source, m.end())]
        function, parameters = enclosing(source, m.start())
        used = [p for p in parameters if re.search(r"\b%s\b" % p, LITERAL.sub("", expression))]
        calls = []
        if function and len(used) >= 1 and literal_words(text_of(expression)) < 12:
            for call in re.finditer(r"(?<![\w:.>])%s\(" % function, source):
                given = arguments(source[call.end() : closing(source, call.end())])
                if len(given) == len(parameters) and any('"' in a for a in given):
                    calls.append(text_of(expression, {p: text_of(a) for p, a in zip(parameters, given)}))
        found += [(kind, text) for text in (calls or [text_of(expression)])]
    for m in re.finditer(r"\bCheck\s*(?:\w+)?\(\s*ErrorKind::(\w+)\s*,", source):
        given = arguments(source[m.end() : closing(source, m.end())])
        if len(given) >= 2:
            found.append((m.group(1), text_of(given[0]) + ". <reason>. " + text_of(given[1])))
    return found


def sentences(text):
    parts = [p for p in re.split(r"(?<=[^.A-Z])\. (?=[A-Z<\"'(])", text) if p]
    parts = [p.rstrip(". ") for p in parts]
    if len(parts) == 1:
        return parts[0], "", ""
    if len(parts) == 2:
        return parts[0], "", parts[1]
    return parts[0], ". ".join(parts[1:-1]), parts[-1]


def page():
    rows = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.cpp")) + sorted((ROOT / folder).rglob("*.hpp")):
            for kind, text in messages_of(path):
                if literal_words(text) >= 3:
                    rows.setdefault(EXIT[kind], {}).setdefault(str(path.relative_to(ROOT).parent), set()).add(text)
    out = HEAD
    for code in [2, 3, 4, 5, 1]:
        out += f"\n## {TITLES[code]}\n"
        for folder in sorted(rows.get(code, {})):
            out += f"\n### {folder}\n\n| message | cause | what to do |\n|---|---|---|\n"
            for text in sorted(rows[code][folder], key=str.lower):
                out += "| " + " | ".join(s.replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;") for s in sentences(text)) + " |\n"
    return out


def main():
    target = ROOT / "docs" / "errors.md"
    text = page()
    if "--check" in sys.argv[1:]:
        if not target.exists() or target.read_text() != text:
            print("docs/errors.md does not agree with the sources. Run docs/make_errors_page.py and commit the page.")
            return 1
        print(f"docs/errors.md agrees with the sources: {text.count(chr(10) + '| ') - text.count('| message |')} messages")
        return 0
    target.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
