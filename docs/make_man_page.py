#!/usr/bin/env python3
"""Makes docs/nsp_app.1 from what the program says about itself.

    docs/make_man_page.py NSP_APP            writes the page
    docs/make_man_page.py NSP_APP --check    ends with 1 if the page does not agree with the program (a test does this)
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Every plug-in with options that is not a default, so that --help lists its options as well; one call for each combination.
PLUGINS = ["desloc,autosp", "sgd"]
VERBS = ["plan", "prepare", "eval", "generate", "checkpoint", "bench", "plugins", "info"]  # and train, which obeys all keys


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def help_text(*words):
    return subprocess.run([*words, "--help"], check=True, capture_output=True, text=True).stdout


def sections(text):
    """(title, [(option, what)]) in the order of --help."""
    found = []
    for line in text.splitlines():
        if re.match(r"^\S.*:$", line):
            found.append((line[:-1], []))
        elif line.startswith("  ") and found:
            parts = re.split(r"\s{2,}", line.strip(), maxsplit=1)
            found[-1][1].append((parts[0], parts[1] if len(parts) > 1 else ""))
    return found


def obeyed(app, verb):
    """Keys that a verb obeys beside its own options, as its --help lists them; "section.*" where that is all of one."""
    all_of, its = dict(sections(help_text(app))), sections(help_text(app, verb))
    keys = []
    for title, rows in its:
        if title == f"options of {verb}" or title not in all_of:
            continue
        if title.startswith("plug-in "):
            if "the options of the plug-ins" not in keys:
                keys.append("the options of the plug-ins")
            continue
        names = [row[0].split()[0].rstrip(",") for row in rows]
        names = [name for name in names if name not in ("--help", "--version")]
        keys += [f"--{title}.*"] if title != "general" and len(rows) == len(all_of[title]) else names
    return keys


def page(app):
    merged, seen = [], set()
    texts = [help_text(app, "--plugins", plugins) for plugins in PLUGINS] + [help_text(app, verb) for verb in VERBS]
    for text in texts:
        for title, rows in sections(text):
            if title not in seen:
                seen.add(title)
                merged.append((title, rows))
    version = subprocess.run([app, "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    out = [f'.TH NSP_APP 1 "" "nsp {version}" "User Commands"', ".SH NAME", "nsp_app \\- pretrain transformer language models with MPI"]
    out += [".SH SYNOPSIS", ".B nsp_app", "[\\fIverb\\fR] [\\fB\\-\\-\\fIkey value\\fR ...]", ".br", ".B mpirun \\-np", "\\fIN\\fR", ".B nsp_app",
            "[\\fB\\-\\-\\fIkey value\\fR ...]"]
    out += [".SH DESCRIPTION",
            roff("nsp trains language models on the machines that there are: the ranks of an MPI job, each with a device of its own, average"),
            roff("gradients or weights as a plug-in decides, and write checkpoints from which any later job goes on. Without any option it trains"),
            roff("a small model on the C and C++ headers of the machine, in ./nsp-run. The same command again resumes."), ".SH VERBS"]
    for title, rows in merged:
        if title == "verbs":
            for name, what in rows:
                out += [".TP", f"\\fB{roff(name)}\\fR", roff(what)]
                verb = name.split()[0]
                if verb in VERBS and obeyed(app, verb):
                    out += [".br", roff("Obeys " + ", ".join(obeyed(app, verb)) + ".")]
    out += [".SH OPTIONS",
            roff("Every key can also stand in an INI file (--config FILE), as key = value under [section], and in the environment as"),
            roff("NSP_SECTION_KEY; options of one verb stand on the command line only. Files and environment serve all verbs and may hold keys"),
            roff("that a verb does not obey; on its command line they are refused, but by plan, which may have the whole command of the job. Later ones win: defaults, preset, checkpoint (on resume), files, environment, command line. Sizes take k, M, G;"),
            roff("times take s, m, h. Defaults stand in brackets.")]
    for title, rows in merged:
        if title == "verbs":
            continue
        out += [f".SS {roff(title)}"]
        for name, what in rows:
            option, _, kind = name.partition(" ")
            out += [".TP", f"\\fB{roff(option)}\\fR" + (f" \\fI{roff(kind)}\\fR" if kind else ""), roff(what)]
    out += [".SH EXIT STATUS"]
    for code, what in [("0", "done, or the run was complete already"), ("1", "error"), ("2", "usage or configuration; a plug-in that cannot be used"),
                       ("3", "the plan does not fit into memory"), ("4", "bad checkpoint or data"), ("5", "training diverged"),
                       ("6", "a collective took longer than comm.timeout"),
                       ("75", "stopped early with a good checkpoint: start the same command again")]:
        out += [".TP", f".B {code}", roff(what)]
    out += [".SH FILES"]
    for name, what in [("RUN/config.ini", "the resolved configuration, each value with its origin"), ("RUN/plan.txt", "who does what, memory, traffic"),
                       ("RUN/metrics.jsonl", "one JSON object a line"), ("RUN/checkpoints/step_*", "checkpoints"),
                       ("RUN/STOP, RUN/CHECKPOINT", "touch one: checkpoint and end with 75, or checkpoint now")]:
        out += [".TP", f".I {roff(name)}", roff(what)]
    out += [".SH SIGNALS", roff("USR1, TERM, INT or HUP at any rank: finish the step, write a checkpoint, end with 75. Open MPI's mpirun passes USR1 on."),
            ".SH SEE ALSO", roff("mpirun(1), sbatch(1); README.md and docs/ of the source, there errors.md, environment.md, plugins.md")]
    return "\n".join(out) + "\n"


def main():
    if len(sys.argv) < 2:
        print(__doc__.strip())
        return 2
    target, text = ROOT / "docs" / "nsp_app.1", page(sys.argv[1])
    if "--check" in sys.argv[2:]:
        if not target.exists() or target.read_text() != text:
            print("docs/nsp_app.1 does not agree with the program. Run docs/make_man_page.py BUILD/bin/nsp_app and commit the page.")
            return 1
        return 0
    target.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
