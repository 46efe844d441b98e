#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Completion in each shell that is installed: typed into bash and zsh, asked of fish. What the scripts
# must hold is in test_help.sh.
. "$(dirname "$0")/cli.sh"
mkdir bin words
printf '#!/bin/sh\nexec %s "$@"\n' "$UNICON" >bin/unicon
chmod +x bin/unicon
export PATH=$PWD/bin:$PATH HOME=$PWD
touch words/some.npy

typed() { # SHELL SETUP KEYS WANTED: the terminal shows WANTED after KEYS
  python3 "$tests/type_keys.py" "$@" >out 2>err || fail "$1: $3 does not give $4"
}

setup='source <(unicon --completion bash)'
typed bash "$setup" 'unicon rep\t' 'unicon report '
typed bash "$setup" 'unicon re\t\t' 'report rewrite'
typed bash "$setup" 'unicon fit --loss cl\t' 'unicon fit --loss clip '
typed bash "$setup" 'unicon fit words/so\t' 'unicon fit words/some.npy'

if command -v zsh >/dev/null; then
  mkdir zfunc
  unicon --completion zsh >zfunc/_unicon
  setup='fpath=($PWD/zfunc $fpath); autoload -U compinit; compinit -u -D'
  typed zsh "$setup" 'unicon rep\t' 'unicon report'
  typed zsh "$setup" 'unicon fit --los\t' 'unicon fit --loss'
  typed zsh "$setup" 'unicon fit --loss cl\t' 'unicon fit --loss clip'
  typed zsh "$setup" 'unicon fit words/so\t' 'unicon fit words/some.npy'
else
  echo "completion: no zsh here"
fi

if command -v fish >/dev/null; then
  unicon --completion fish >unicon.fish
  asked() { # LINE: what is offered, a word per line
    last="fish: $1"
    fish --no-config -c "source unicon.fish; complete -C '$1'" 2>err | cut -f1 >out
  }
  asked "unicon re"
  [ "$(tr '\n' ' ' <out)" = "report rewrite " ] || fail "$last gives $(cat out)"
  asked "unicon fit --los"
  grep -qx -- "--loss" out || fail "$last gives $(cat out)"
  asked "unicon embed --side "
  [ "$(tr '\n' ' ' <out)" = "x y " ] || fail "$last gives $(cat out)"
  asked "unicon fit words/so"
  grep -qx "words/some.npy" out || fail "$last gives $(cat out)"
else
  echo "completion: no fish here"
fi
echo "completion: ok"
