#!/usr/bin/env python3
"""make_pages.py --programs BUILD/bin --out FOLDER: manual pages and shell completion of all programs that are built.

Each program says its purpose, usage and flags with --describe-flags (planner/verbs/flag_list.h), so pages tell what programs take. Writes
man/frazil.1 and man/frazil-NAME.1, bash/frazil, zsh/_frazil and fish/frazil.fish. Equal programs give equal bytes.
"""

import argparse
import json
import re
import subprocess
from pathlib import Path

PLACES = ("FILE", "FOLDER")  # values that are names of files or folders
FRONT_DOOR = ("help", "--help", "--version")


def ask(program, flag):
    return subprocess.run([program, flag], capture_output=True, encoding="utf-8", check=True).stdout


def describe_programs(folder):
    """What each program beside the front door says of itself, in the order of the front door's help."""
    names = re.findall(r"^  (\w+) ", ask(folder / "frazil", "--help"), re.M)
    built = [name for name in names if (folder / f"frazil-{name}").exists()]
    return [json.loads(ask(folder / f"frazil-{name}", "--describe-flags")) for name in built]


def kinds_of(verb):
    """Words of which one follows the subcommand: `kineto` in `frazil import kineto TRACE...`, or listed below the purpose."""
    return re.findall(rf"frazil {verb['name']} ([a-z][a-z-]*)", verb["usage"]) + re.findall(r"^  ([a-z][a-z-]*) ", verb["purpose"], re.M)


def summary_of(verb):
    return verb["purpose"].partition("\n")[0]


# Manual pages


def roff(text):
    """Text as a line of roff: nothing in it is a request or an escape."""
    text = text.replace("\\", "\\(rs").replace("-", "\\-").replace("'", "\\(aq")
    return "\n".join("\\&" + line if line[:1] == "." else line for line in text.splitlines())


def page_head(name, purpose, version):
    return f'.TH {name.upper()} 1 "" "{version}" "Frazil"\n.SH NAME\n{roff(name)} \\- {roff(purpose)}\n'


def page_of_verb(verb, version, codes):
    name = f"frazil-{verb['name']}"
    more = verb["purpose"].partition("\n")[2].strip("\n")
    page = page_head(name, summary_of(verb), version)
    page += f".SH SYNOPSIS\n.nf\n{roff(verb['usage'])}\n.fi\n"
    page += f".SH DESCRIPTION\n.nf\n{roff(more)}\n.fi\n" if more else ""
    page += ".SH OPTIONS\n"
    for flag in verb["flags"]:
        value = f" \\fI{roff(flag['value'])}\\fR" if flag["value"] else ""
        page += f".TP\n\\fB{roff('--' + flag['name'])}\\fR{value}\n{roff(flag['meaning'])}\n"
    return page + ".SH EXIT STATUS\n" + "".join(f".TP\n{code}\n{roff(meaning)}\n" for code, meaning in codes) + ".SH SEE ALSO\n.BR frazil (1)\n"


def page_of_front_door(verbs, version):
    page = page_head("frazil", "plans, simulates and runs training pipelines whose shape changes while they train", version)
    page += ".SH SYNOPSIS\n.B frazil\n\\fIsubcommand\\fR [\\fIflags\\fR]\n.br\n.B frazil help\n[\\fIsubcommand\\fR]\n.SH SUBCOMMANDS\n"
    for verb in verbs:
        page += f".TP\n.BR frazil\\-{verb['name']} (1)\n{roff(summary_of(verb))}\n"
    return page


def exit_codes(folder, verb):
    """Codes and their meanings, as --help ends with them."""
    told = ask(folder / f"frazil-{verb['name']}", "--help").partition("exit codes:\n")[2]
    return re.findall(r"^  (\d[\d+ n]*?)  +(.+)$", told, re.M)


# Completion


def words(names):
    return " ".join(names)


def takes_list(flag):
    """Whether the value is a comma list of words."""
    return flag["value"] == "LIST"


def bash_values(flags):
    """A case for each flag with known values; of a comma list the last word is completed."""
    text = ""
    for flag in flags:
        if "values" in flag:
            text += f"        --{flag['name']}) values='{words(flag['values'])}'; separator='{',' if takes_list(flag) else ''}' ;;\n"
    return text and f"      case $before in\n{text}      esac\n"


def bash_completion(verbs):
    cases = ""
    for verb in verbs:
        flags = verb["flags"]
        cases += (
            f"    {verb['name']})\n"
            f"      kinds='{words(kinds_of(verb))}'\n"
            f"      flags='{words('--' + flag['name'] for flag in flags)}'\n"
            f"      places='{words('--' + flag['name'] for flag in flags if flag['value'] in PLACES)}'\n"
            f"      others='{words('--' + flag['name'] for flag in flags if flag['value'] and flag['value'] not in PLACES)}'\n"
            f"{bash_values(flags)}"
            "      ;;\n"
        )
    return f"""# bash completion of frazil
_frazil() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} kinds='' flags='' places='' others='' values='' separator='' kept=''
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ] || [ "$before" = help ]; then
    mapfile -t COMPREPLY < <(compgen -W '{words([*(verb['name'] for verb in verbs), *FRONT_DOOR])}' -- "$current")
    return
  fi
  case ${{COMP_WORDS[1]}} in
{cases}  esac
  if [ -n "$values" ]; then
    case "$separator$current" in ,*,*) kept=${{current%,*}}, ;; esac
    mapfile -t COMPREPLY < <(compgen -P "$kept" -W "$values" -- "${{current#"$kept"}}")
    return
  fi
  case " $places " in *" $before "*) return ;; esac
  case " $others " in *" $before "*) compopt +o default 2>/dev/null; return ;; esac
  case $current in
    -*) mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$current") ;;
    *) if [ "$COMP_CWORD" -eq 2 ]; then mapfile -t COMPREPLY < <(compgen -W "$kinds" -- "$current"); fi ;;
  esac
}}
complete -o default -F _frazil frazil
"""


def quote(text):
    """One word of a shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def zsh_values(flag):
    """What completes a value that names no file."""
    if "values" not in flag:
        return " "
    return f"_values -s , {flag['value']} {words(flag['values'])}" if takes_list(flag) else f"({words(flag['values'])})"


def zsh_spec(flag):
    meaning = re.sub(r"([\\\[\]:])", r"\\\1", flag["meaning"])
    action = ""
    if flag["value"]:
        action = f":{flag['value']}:" + ("_files" if flag["value"] in PLACES else zsh_values(flag))
    return quote(f"*--{flag['name']}[{meaning}]{action}")


def zsh_completion(verbs):
    listed = " ".join(quote(f"{verb['name']}:{summary_of(verb)}") for verb in verbs)
    cases = ""
    for verb in verbs:
        kinds = kinds_of(verb)
        specs = [zsh_spec(flag) for flag in verb["flags"]]
        specs += [quote(f"1:kind:({words(kinds)})")] if kinds else []
        specs += ["'*:file:_files'"]
        cases += f"    {verb['name']})\n      _arguments \\\n        " + " \\\n        ".join(specs) + "\n      ;;\n"
    return f"""#compdef frazil
local -a subcommands
subcommands=({listed} 'help:say more of a subcommand')
if (( CURRENT == 2 )); then
  _describe subcommand subcommands
  return
fi
shift words
(( CURRENT-- ))
case $words[1] in
    help) _describe subcommand subcommands ;;
{cases}esac
"""


def fish_completion(verbs):
    text = "# fish completion of frazil\n"
    for verb in verbs:
        text += f"complete -c frazil -n __fish_use_subcommand -f -a {verb['name']} -d {quote(summary_of(verb))}\n"
    text += f"complete -c frazil -n '__fish_seen_subcommand_from help' -f -a {quote(words(verb['name'] for verb in verbs))}\n"
    for verb in verbs:
        seen = f"complete -c frazil -n '__fish_seen_subcommand_from {verb['name']}'"
        if kinds_of(verb):
            text += f"{seen} -a {quote(words(kinds_of(verb)))}\n"
        for flag in verb["flags"]:
            takes = "" if not flag["value"] else " -r" if flag["value"] in PLACES else " -x"
            if "values" in flag:
                known = words(flag["values"])
                takes += " -a " + quote(f"(__fish_append , {known})" if takes_list(flag) else known)
            text += f"{seen} -l {flag['name']}{takes} -d {quote(flag['meaning'])}\n"
    return text


def make_pages(programs):
    """The text of each page, by its path."""
    verbs = describe_programs(programs)
    version = ask(programs / "frazil", "--version").strip()
    codes = exit_codes(programs, verbs[0])
    pages = {f"man/frazil-{verb['name']}.1": page_of_verb(verb, version, codes) for verb in verbs}
    pages["man/frazil.1"] = page_of_front_door(verbs, version)
    pages["bash/frazil"] = bash_completion(verbs)
    pages["zsh/_frazil"] = zsh_completion(verbs)
    pages["fish/frazil.fish"] = fish_completion(verbs)
    return pages


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, required=True, help="folder of the built programs")
    parser.add_argument("--out", type=Path, required=True, help="folder to write into")
    given = parser.parse_args()
    for path, text in make_pages(given.programs).items():
        (given.out / path).parent.mkdir(parents=True, exist_ok=True)
        (given.out / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
