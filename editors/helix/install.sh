#!/bin/sh
# Adds the language to Helix's configuration, once, and copies the queries. `hx --grammar build` then builds the parser.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../.." && pwd)
helix=${XDG_CONFIG_HOME:-$HOME/.config}/helix

mkdir -p "$helix/runtime/queries/tile"
for query in highlights locals folds tags; do
    cp "$repository/editors/tree-sitter-tile/queries/$query.scm" "$helix/runtime/queries/tile/"
done
cp "$here"/queries/*.scm "$helix/runtime/queries/tile/"
if ! grep -q '^\[language-server.ptoc\]' "$helix/languages.toml" 2>/dev/null; then
    sed "s#\"PTOC/#\"$repository/#; s# \# PTOC is where.*##" "$here/languages.toml" >>"$helix/languages.toml"
fi
echo "added to $helix/languages.toml; now run: hx --grammar build"
