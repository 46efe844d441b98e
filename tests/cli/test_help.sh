#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every option of both tables is in the help of its commands, the man page and the completions.
. "$(dirname "$0")/cli.sh"

# The tables themselves, read from the source: "command option" lines.
python3 - >options <<'PYTHON'
import os, re
root = os.environ["UNICON_SOURCE_DIR"]
text = open(os.path.join(root, "src/base/options.h")).read().replace("\\\n", " ")
commands = {"FIT": ["fit", "plan"], "EVAL": ["eval"], "SYNTH": ["synth"],
            "USE": ["embed", "search"], "PROBE": ["probe"], "CHECK": ["check"], "COMPARE": ["compare"], "REPORT": ["report"],
            "BALANCE": ["balance"], "WEIGHTS": ["weights"], "MIGRATE": ["migrate"],
            "MOVE": ["embed", "search", "rewrite"], "STATS": ["stats", "landmarks"],
            "CONTEXT": ["fit", "plan", "check", "compare", "eval", "report", "probe", "embed", "search", "balance",
                        "weights", "migrate", "rewrite", "stats", "merge", "landmarks", "info", "synth"]}
limited = {"precision": ["fit", "plan", "compare", "weights"],  # of the context, but of no use elsewhere
           "device": [command for command in commands["CONTEXT"] if command not in ("synth", "merge")]}
string = r'"((?:[^"\\]|\\.)*)"\s*(?:"(?:[^"\\]|\\.)*"\s*)*'
row = re.compile(r'X\((\w+),\s*' + ",\\s*".join([string] * 5) + r',\s*([^,]+),\s*([^,]+),\s*([A-Z| ]+),')
found = row.findall(text)
assert len(found) == len(re.findall(r'\bX\([A-Z_]+,', text)) > 20, len(found)
for fields in found:
    for scope in fields[8].replace(" ", "").split("|"):
        for command in commands[scope]:
            if command in limited.get(fields[1], [command]):
                print(command, "--" + fields[1].replace("_", "-"))
text = open(os.path.join(root, "programs/tool_options.c")).read()
commands.update({"FIT": ["fit"], "ALL": commands["CONTEXT"],
                 "PAIRED": ["fit", "plan", "check", "eval", "compare", "report", "weights"],
                 "JUDGED": ["fit", "plan", "compare"], "USED": ["eval", "embed", "search"], "PLAN": ["plan"], "EMBED": ["embed"],
                 "SEARCH": ["search"], "INFO": ["info"], "REWRITE": ["rewrite"], "TOP": [],
                 "STATS": ["stats"], "MERGE": ["merge"], "LANDMARKS": ["landmarks"]})
for name, where in re.findall(r'\{CLI_OPT_\w+, "([a-z-]+)".*?((?:CLI_|PAIRED|JUDGED|USED)[A-Z| CLI_]*),\s*(?:"|CLI_GENERAL)', text, re.S):
    for word in where.replace("CLI_", "").replace(" ", "").split("|"):
        for command in commands[word]:
            print(command, "--" + name)
PYTHON
[ "$(sort -u options | wc -l)" -gt 60 ] || fail "the tables were not read"

run 0 --man
cp out man.scd
for shell in bash zsh fish; do
  run 0 --completion $shell
  cp out completion.$shell
done
for command in fit plan check compare eval report embed search balance weights migrate rewrite stats merge \
  landmarks probe info synth; do
  all=--help
  case $command in fit | plan)
    run 0 $command --help
    prints "unicon $command --help-all"
    [ "$(grep -cE "^  (-[a-z], )?--" out)" -le 20 ] || fail "$command --help lists more than the common options"
    grep -q "^Losses" out && fail "$command --help has the formulas"
    for option in output preset kernel pairs bad-rows json budget help-all; do
      [ "$command $option" = "plan output" ] || grep -q -- "--$option" out || fail "$command --help lacks --$option"
    done
    all=--help-all
    ;;
  esac
  run 0 $command $all
  cp out help.$command
  awk 'length > 80 { exit 1 }' out || fail "$command --help has a line over 80 columns"
done
while read -r command option; do
  grep -qE -- "(^|[ ,])$option( |\$)" help.$command || fail "the help of $command lacks $option"
  grep -qF -- "*$option*" man.scd || fail "man page lacks $option"
  grep -qE -- "^    $command\) options='.*${option}[ ']" completion.bash || fail "bash lacks $command $option"
  grep -qF -- "$option" completion.zsh || fail "zsh lacks $option"
  grep -qE -- "$command.* -l ${option#--} " completion.fish || fail "fish lacks $command $option"
done <options
tr '\n' ' ' <help.weights | tr -s ' ' | grep -q "One of: clip, .*Default: that of the model, else clip." ||
  fail "weights --help: the loss is that of the model"
for command in eval search info synth; do
  grep -q -- "--precision" help.$command && fail "$command --help has --precision"
done
# Options that set how a model is fitted: no more than docs/architecture.md says.
python3 - <<'PYTHON' || fail "fit has too many options"
import os, re
text = open(os.path.join(os.environ["UNICON_SOURCE_DIR"], "src/base/options.h")).read().replace("\\\n", " ")
rows = re.findall(r'X\([A-Z_]+,(?:[^"()]|"(?:[^"\\]|\\.)*")*\)', text)
fit = [r for r in rows if re.search(r",[A-Z| ]*\b(FIT|CONTEXT)\b[A-Z| ]*,", r)]
with open(os.path.join(os.environ["UNICON_SOURCE_DIR"], "docs/architecture.md")) as document:
    most = int(re.search(r"A fit has at most (\d+) options", document.read()).group(1))
assert 20 < len(fit) <= most, (len(fit), most)
PYTHON

# Help is as wide as the terminal, within reason; formulas and what is quoted stay on a line.
for columns in 30 60 72 90 200; do
  COLUMNS=$columns run 0 fit --help-all
  most=$((columns < 60 ? 60 : columns > 100 ? 100 : columns))
  awk -v most=$most 'length > most && !/^  unicon / { exit 1 }' out || fail "help is wider than $columns columns"
done
awk 'length > 90 { wide = 1 } END { exit !wide }' out || fail "help does not use the terminal"
for columns in 72 80 90 100; do
  COLUMNS=$columns run 0 fit --help-all
  while read -r formula; do prints "$formula"; done <<'FORMULAS'
F_x = U S^(E A)
F_y = V S^(E (1-A))
T log(1 + sum_j exp((s_ij - s_ik)/T))
sum_j max(0, s_ij - s_ik + margin)
-T log(1+e^((M-x)/T))
W_x C W_y
`x_row TAB y_row [TAB weight]`
(3 sin A cos A + (pi - A) (1 + 2 cos^2 A)) / (3 pi)
FORMULAS
  COLUMNS=$columns run 0 search --help
  prints '`query TAB rank TAB base TAB score`'
done

# Where the default preset chooses a value, help and report say so, and not a default that is not
# used. What it chooses is what select.c writes.
python3 - >chosen <<'PYTHON'
import os, re
text = open(os.path.join(os.environ["UNICON_SOURCE_DIR"], "src/select/params.c")).read()
body = text[text.index("unicon_status unicon__params_write("):]
body = body[:body.index("\n}\n")]
names = re.findall(r"(?:options_choose|options_replace|write_number)\(ctx, options, UNICON__([A-Z_]+)", body)
names += re.findall(r"write_(ridge)\(", body)
print(*sorted({name.lower() for name in names}), sep="\n")
PYTHON
[ "$(wc -l <chosen)" -ge 5 ] || fail "what auto chooses was not read"
for command in fit plan; do
  python3 - $command <<'PYTHON' || fail "$command --help: what auto chooses"
import re, sys
text = " ".join(open("help." + sys.argv[1]).read().split())
said = set(re.findall(r"--([a-z-]+) \S+ (?:(?! --[a-z]).)*?Default: chosen by auto", text))
want = {line.strip().replace("_", "-") for line in open("chosen")}
assert said == want, (said, want)
PYTHON
done
grep -q "chosen by auto" help.check && fail "check --help: auto chooses nothing there"
run 0 info
prints "chosen on held-out pairs: kernel, landmarks"
run 0 info --json
json "sorted(n for n, v in j['presets']['auto'].items() if v == 'chosen') == open('chosen').read().split()"
run 0 --help
prints "held-out pairs"
[ "$(sed -n 1p out | tr -d '\n' | wc -c)" -lt 90 ] || fail "the first line of --help is long"

# Formulas stand at the end of fit --help-all, and only for words that are accepted.
grep -q "^Losses (--loss):" help.fit || fail "fit --help lacks the losses"
grep -q "^Metric (--metric):" help.fit || fail "fit --help lacks the metric"
tr '\n' ' ' <help.fit | tr -s ' ' >one_line
losses=$(sed -nE 's/.*--loss NAME [^:]*: ([a-z, ]*)\. Default.*/\1/p' one_line | tr -d ,)
[ "$(echo "$losses" | wc -w)" -ge 2 ] || fail "the losses were not read"
for loss in $losses; do
  grep -qE "^  $loss +" help.fit || fail "no formula for the loss $loss"
done

# The man page is scdoc with its sections, and says which files and exit statuses there are.
for section in NAME SYNOPSIS DESCRIPTION COMMANDS OPTIONS FILES "EXIT STATUS" EXAMPLES; do
  grep -qx "# $section" man.scd || fail "man page lacks $section"
done
if command -v scdoc >/dev/null; then scdoc <man.scd >unicon.1; fi

# The bash completion parses and completes.
bash -n completion.bash
complete_words() { # WORDS...: what is offered for the last word
  (
    . ./completion.bash
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    COMPREPLY=()
    _unicon
    echo "${COMPREPLY[*]}"
  )
}
touch some.npy
[ "$(complete_words unicon ev)" = eval ] || fail "completion of a command"
[ "$(complete_words unicon --vers)" = --version ] || fail "completion of --version"
[ "$(complete_words unicon fit --ran)" = --rank ] || fail "completion of an option"
[ "$(complete_words unicon fit --loss cl)" = clip ] || fail "completion of a word"
[ "$(complete_words unicon fit some)" = some.npy ] || fail "completion of a file"
[ "$(complete_words unicon fit -o so)" = some.npy ] || fail "completion of an output"
[ "$(complete_words unicon embed --side "")" = "x y" ] || fail "completion of a side"
[ "$(complete_words unicon --completion f)" = fish ] || fail "completion of a shell"
if command -v zsh >/dev/null; then zsh -n completion.zsh; fi
if command -v fish >/dev/null; then fish -n completion.fish; fi
echo "help: ok"
