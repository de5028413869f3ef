#!/usr/bin/env bash
# Breaks lines that guard HTTP rules, in a copy of the tree, and sees whether the tests notice: tools/mutate.sh --help
set -uo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin
exec "${GO:-go}" run ./internal/arch/mutate "$@"
