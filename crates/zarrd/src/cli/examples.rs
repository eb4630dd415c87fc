//! The texts after the help of each command.

pub(super) const EXAMPLES: &str = "\
Examples:
  zarrd serve                             serve the store in ./zarrd-data on http://127.0.0.1:8000
  zarrd import ./data.zarr lab/data.zarr  copy a hierarchy from disk into the store
  zarrd export lab/data.zarr ./copy.zarr  and back
  zarrd tree lab                          show the nodes below lab, with shapes and data types
  zarrd check                             read every value and verify its checksums

Settings:
  Each flag marked [env: …] is a setting. A flag takes precedence over its environment variable, the variable over \
  zarrd.toml (or the file given with --config), and the file over the default. The keys of zarrd.toml are the flags \
  without their dashes:

    store = \"sled:/data\"
    listen = \"0.0.0.0:8000\"
    anonymous = \"read\"
    allow-host = [\"zarr.example.org\"]";

pub(super) const SERVE_EXAMPLES: &str = "\
Examples:
  zarrd serve
      for programs on this machine only, which may read and write everything
  zarrd serve --store redb:/data --listen 0.0.0.0:8000 --anonymous read
      for all clients that can reach port 8000, read-only
  zarrd serve --read-only --store /archive
      serve an existing store without writing to it
  zarrd serve --store dir:/data
      serve a directory that zarr-python and others write, without writing to it
  zarrd serve --store s3://bucket/lab
      serve a prefix of a bucket, with the credentials of the environment
  zarrd serve --store https://example.org/data
      serve the files of a web server
  zarrd serve --mount lab=s3://bucket/lab --mount old=dir:/archive
      show other stores below /lab and /old, beside what the own store has
  zarrd serve --store memory: --listen 127.0.0.1:0
      for a test: nothing is persistent, and the line on stdout has the port

When it listens, it prints one line with its address on stdout. Logs go to stderr. SIGTERM and Ctrl-C stop it: it accepts \
no more connections, running requests finish, the store is closed, and the exit code is 0. A second signal stops it \
immediately with exit code 130 or 143, without losing acknowledged changes. SIGHUP \
reopens the files of --access-log-file and --audit-log-file, and loads the certificate of --tls-cert again.";

pub(super) const IMPORT_EXAMPLES: &str = "\
Examples:
  zarrd import ./data.zarr lab/data.zarr
      every file below ./data.zarr becomes a key below lab/data.zarr/, with the same bytes
  zarrd import ./data.zarr
      below data.zarr/, the name of the directory
  zarrd import --overwrite ./data.zarr lab/data.zarr
      in place of what is there
  zarrd import --server http://127.0.0.1:8000 ./data.zarr lab/data.zarr
      the same while a server has opened the store
  zarrd import http://other:8000/store/lab/exp1/ lab/exp1
      copy everything below a prefix of another zarrd
  zarrd import s3://bucket/exp2 lab/exp2
      copy everything below a prefix of a bucket (gs:// and az:// too)

All Zarr dialects and all other files can be imported, including files whose names begin with a dot. Symbolic links are \
not followed. If there is a link, a device, or a file whose name is not a valid key, the command lists them and fails \
before it writes anything; --skip-invalid skips them instead. Chunks are written before the metadata of their array, \
and arrays before their groups, so that readers never see an array with missing chunks.

Without a prefix, the name of the directory is the prefix. If there are keys below it, nothing is imported, unless \
--overwrite replaces all of them, or --merge adds to them. Chunks that only the older data have remain with --merge, and \
show if an array grows. With --overwrite they are gone: the new data are collected below the prefix __zarrd-import \
before anything is erased; on a server, what is there is erased first. An import is not one commit: after an \
interruption, repeat it with --overwrite or --merge. Directories of stores and tokens of zarrd are refused.

The last line on stdout is a summary in JSON.";

pub(super) const EXPORT_EXAMPLES: &str = "\
Examples:
  zarrd export lab/data.zarr ./data.zarr
      every key below lab/data.zarr/ becomes a file below ./data.zarr
  zarrd export '' ./everything
      the whole store
  zarrd export --server http://127.0.0.1:8000 lab ./lab
      from a running server
  zarrd export --store s3://bucket/lab exp1 ./exp1
      from a bucket

DIR must be new or empty. A key such as a/b cannot become a file if a is a key too, nor can a name of more than 255 bytes: \
the command lists them and fails before it writes anything; --skip-invalid skips them instead. A damaged value is \
reported and skipped, and the exit code is 5: Zarr reads the missing chunk as the fill value. A file gets its name when \
it is complete; when the command ends, all files are durable.

The last line on stdout is a summary in JSON.";

pub(super) const LS_EXAMPLES: &str = "\
Examples:
  zarrd ls
      the nodes at the root of the store in ./zarrd-data
  zarrd ls -l lab/exp1
      those below the group lab/exp1, with dialects, chunks and codecs
  zarrd ls --server http://127.0.0.1:8000 --json lab
      through a running server, as one JSON object per line

Groups end in /. Nodes of all dialects are listed.";

pub(super) const TREE_EXAMPLES: &str = "\
Examples:
  zarrd tree
      the whole store in ./zarrd-data
  zarrd tree --depth 2 lab
      two levels below the group lab
  zarrd tree --server http://127.0.0.1:8000 lab
      through a running server
  zarrd tree --store s3://bucket/lab
      the nodes in a bucket

The dialect is shown if it differs from that of the parent group. With --json the output is one JSON object per line, in \
the same order.";

pub(super) const INFO_EXAMPLES: &str = "\
Examples:
  zarrd info lab/exp1/mice
      the metadata of an array, its attributes, and the number and size of its stored chunks
  zarrd info --server http://127.0.0.1:8000 --json lab/exp1
      a group, through a running server, as one JSON object

At most 100,000 stored chunks are counted.";

pub(super) const GET_EXAMPLES: &str = "\
Examples:
  zarrd get lab/exp1/mice --select 0:10,0
      the first elements, as JSON
  zarrd get lab/temperature --sel time=2020-01 --decode cf --reduce mean --axis time -o january.npy
      the mean of a month, as a file for NumPy
  zarrd get --store s3://bucket/lab map --coarsen y=8 --coarsen x=8 --reduce mean --cmap viridis -o map.png
      a picture of an array in a bucket, at an eighth of its resolution
  zarrd get --server http://127.0.0.1:8000 lab/table --format csv
      through a running server

The selection and all that follows are the parameters of the server's /array. A file is written completely or not at all.";

pub(super) const STATS_EXAMPLES: &str = "\
Examples:
  zarrd stats lab/exp1/mice
      number, extremes, mean, standard deviation, quantiles and histogram of all elements
  zarrd stats --select 0 --quantiles 0.01,0.99 --bins 0 lab/exp1/mice
      of the first plane, with other quantiles and without a histogram
  zarrd stats --server http://127.0.0.1:8000 --json lab/exp1/mice
      through a running server, as one JSON object";

pub(super) const CHECK_EXAMPLES: &str = "\
Examples:
  zarrd check
  zarrd check --store redb:/data
  zarrd check --store s3://bucket/lab
      directories and buckets have no checksums of zarrd's: every value is read to its end

No server may have opened a store of zarrd's own. Each damaged or missing value is reported on stderr, and the exit code is \
5 if there are any. To repair them, set or erase their keys. The last line on stdout is a summary in JSON.";

pub(super) const COMPACT_EXAMPLES: &str = "\
Examples:
  zarrd compact
      the index of the store in ./zarrd-data
  zarrd compact redb:/data

Replaced and erased values leave unused space in the index, which only this command returns to the file system. It writes \
a new index next to the old one. If there is not enough space for both, nothing is changed, the message has the number \
of bytes that are needed, and the exit code is 1. Value files need no compaction.

No server may have opened the store. A signal waits for the end. The last line on stdout is a summary in JSON.";

pub(super) const COPY_EXAMPLES: &str = "\
Examples:
  zarrd copy sled:/data redb:/data-new
      convert a store with a sled index into one with a redb index
  zarrd copy sled:/data redb:/data-new --resume
      the same, going on with a copy that was interrupted

No server may have opened either store. TO must be new or an empty directory. Until the copy is complete, TO has a file \
named incomplete, and every other command rejects it with exit code 3. --resume goes on with it unless the store was \
opened for writing since it began; then, or to begin again, remove TO. The values get new versions, so ETags change. The last line on stdout is a summary in JSON.";

pub(super) const BACKUP_EXAMPLES: &str = "\
Examples:
  zarrd backup /backup/lab --server http://127.0.0.1:8000 --tokens /data/access --keep 14
      back up a running server, with its tokens, and keep the newest 14 backups
  zarrd backup /backup/lab --store sled:/data
      back up a store that no server has opened

Everything in the backup is of one commit, whatever is written meanwhile. Values that the backup before has are not copied \
again. Of a server it takes a token that may read everything; the operations that are under way, which a restored store \
finishes or undoes, are part of the backup if the token is that of an administrator (admin:/). The last line on stdout is a \
summary in JSON.";

pub(super) const RESTORE_EXAMPLES: &str = "\
Examples:
  zarrd restore /backup/lab sled:/data-new
      create a store from the newest backup
  zarrd restore /backup/lab --list
      list the backups
  zarrd restore /backup/lab redb:/data-new --backup 20261128T074512Z
      create a store with another index from an older one

The store must be new or an empty directory. Until it is complete, it has a file named incomplete, and every command rejects \
it with exit code 3. The values get new versions, so ETags change, and a backup of the new store takes another directory.";

pub(super) const RECOVER_EXAMPLES: &str = "\
Examples:
  zarrd recover sled:/data sled:/data-new
      read what is certain of a damaged store into a new one
  zarrd recover /data redb:/data-new --doubtful --report lost.jsonl
      take doubtful values too, and list them with what is lost

Nothing is written into the damaged store, and no server may have opened it. Certain is what was proven to be the last value \
of its key; everything else that is whole is doubtful. The exit code is 5 if a value is doubtful or lost; each is named. \
Until the new store is complete, it has a file named incomplete, and every command rejects it with exit code 3.";

pub(super) const HEALTH_EXAMPLES: &str = "\
Examples:
  zarrd health
      check the server on this machine, at the address in ZARRD_LISTEN or zarrd.toml
  zarrd health --url http://lab:8000

The exit code is 0 if the server is ready, and 1 if it is unreachable, is stopping, or has become read-only after a failed \
write. A full disk is not a failure, since reads and erasures continue, nor is serve --read-only.";

pub(super) const TOKEN_EXAMPLES: &str = "\
Examples:
  zarrd token create --name Ada --allow read:lab/ --allow write:lab/exp1/ --expires 90d
      may read everything below lab/, and change what is below lab/exp1/, for 90 days
  zarrd token create --name operator --allow admin:/
      may do everything, including the creation of tokens through a server
  zarrd token list
  zarrd token revoke Ada
  zarrd token rotate && zarrd token rotate --drop 1
      end all tokens that were made with key 1

Tokens are files in a directory, which the commands work on directly: run them as the user that runs the server. Running \
servers see a change within a second. The token itself is shown once, by create; it is not stored, and whoever has it \
has its rights.";

pub(super) const APPEND_EXAMPLES: &str = "\
Examples:
  zarrd append http://127.0.0.1:8000 lab/weather day.npz --dim time
      numpy.savez(\"day.npz\", time=…, rain=…, wind=…) wrote the file
  zarrd append http://127.0.0.1:8000 lab/weather day.npz --dim time --decode cf
      the arrays are packed, and the file has the numbers and times that they stand for

All arrays directly in the group that have the dimension grow in one commit, with its coordinate, whose new labels have to \
follow those that it has. If anything is wrong, nothing is appended.";

pub(super) const SHARE_EXAMPLES: &str = "\
Examples:
  zarrd share https://lab.example.org lab/exp1 --expires 7d
  zarrd share https://lab.example.org lab/exp1 --expires 2027-01-31 --name 'for Ada' --json

The URL is the base for curl, browsers and every Zarr client: the usual path follows it, such as /store/lab/exp1. It ends at \
its time, with the token that it is made with, or with `DELETE /share/ID`.";

pub(super) const LOGIN_EXAMPLES: &str = "\
Examples:
  zarrd login https://lab.example.org
      asks for the token, and does not show it
  zarrd login http://127.0.0.1:8000 < token.txt

The token is stored in zarrd/tokens.json in XDG_CONFIG_HOME or ~/.config, accessible to you only, and sent by other \
commands to URLs with the same scheme, host and port. ZARRD_TOKEN takes precedence; if import has two servers, it is for \
the one of --server.";

pub(super) const LOGOUT_EXAMPLES: &str = "\
Examples:
  zarrd logout https://lab.example.org

The token stays valid: zarrd token revoke ends it.";
