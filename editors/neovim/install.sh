#!/bin/sh
# Installs the plugin, the parser and its queries where Neovim looks for them. Needs a C compiler.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
grammar=$here/../tree-sitter-tile
site=${XDG_DATA_HOME:-$HOME/.local/share}/nvim/site

mkdir -p "$site/plugin" "$site/parser" "$site/queries/tile"
"${CC:-cc}" -O2 -shared -fPIC -I "$grammar/src" "$grammar/src/parser.c" -o "$site/parser/tile.so"
cp "$grammar"/queries/*.scm "$site/queries/tile/"
cp "$here/plugin/ptoc.lua" "$site/plugin/"
echo "installed below $site"
