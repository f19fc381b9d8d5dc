#!/bin/sh
# Makes what docker-compose.yml keeps secret, in ./secrets (or the folder named): what is there already stays as it is.
# The folder is its owner's alone. The files in it may be read, as containers read them under accounts of their own.
set -eu
folder=${1:-secrets}
umask 022
mkdir -p "$folder"
chmod 700 "$folder"

write() { # NAME TEXT: whole or not at all
    [ -s "$folder/$1" ] || { printf '%s\n' "$2" > "$folder/.$1" && mv "$folder/.$1" "$folder/$1"; }
}
random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

write database_password "$(random)"
write redis_password "$(random)"
write secret_key "$(random)"
write pseudonym_key "$(random)"
write database_url "postgresql+psycopg2://reviewloop:$(cat "$folder/database_password")@postgres/reviewloop"
write redis_url "redis://:$(cat "$folder/redis_password")@redis:6379/0"
write searxng.env "SEARXNG_SECRET=$(random)"
# Of the dashboard's tokens only hashes are kept: who looks after it is told them here, once.
for role in viewer operator; do
    [ -s "$folder/web_$role" ] && continue
    token=$(random)
    write "web_$role" "sha256:$(printf %s "$token" | sha256sum | cut -d' ' -f1)"
    echo "dashboard token of ${role}s, shown only now: $token" >&2
done
write sign-ins.env '# REVIEWLOOP_LOGIN_<SITE>_USER=..., one a line: docs/sign-in.md'
chmod 600 "$folder"/*.env
echo "$folder has the secrets of docker-compose.yml" >&2
