-- SPDX-License-Identifier: MIT OR Apache-2.0
-- Transactions on files, journals of both kinds, several databases, damaged files.
.open main.db
PRAGMA page_size = 1024;
PRAGMA journal_mode = delete;
CREATE TABLE t(k INTEGER PRIMARY KEY, v TEXT, b BLOB);
BEGIN;
INSERT INTO t SELECT value, 'value ' || value, zeroblob(value % 3000) FROM primes(2000);
SAVEPOINT one;
DELETE FROM t WHERE k > 100;
SELECT count(*) FROM t;
SAVEPOINT two;
UPDATE t SET v = pause('changed');
ROLLBACK TO one;
RELEASE one;
SELECT count(*), sum(length(v)) FROM t;
COMMIT;
BEGIN IMMEDIATE;
UPDATE t SET b = randomblob(5000) WHERE k < 500;
ROLLBACK;
SELECT count(*), sum(length(b)) FROM t;
BEGIN; BEGIN;
COMMIT; COMMIT;
PRAGMA integrity_check;
VACUUM;
PRAGMA page_count;
PRAGMA journal_mode = wal;
BEGIN;
INSERT INTO t SELECT value + 10000, 'wal', zeroblob(100) FROM primes(3000);
COMMIT;
PRAGMA wal_checkpoint;
SELECT count(*) FROM t;
PRAGMA journal_mode = delete;
CREATE INDEX t_v ON t(v, k);
.open other.db
CREATE TABLE u AS SELECT value AS x FROM primes(100);
.open main.db
SELECT count(*) FROM pragma_database_list;
PRAGMA cache_size = 10;
PRAGMA cache_spill = 10;
PRAGMA temp_store = file;
BEGIN;
UPDATE t SET b = zeroblob(2500) WHERE k % 2 = 1;
CREATE TEMP TABLE big AS SELECT a.k AS x, b.v AS y FROM t a, t b WHERE a.k < 200 AND b.k < 500;
SELECT count(*), count(DISTINCT x || y) FROM big;
SELECT x, y FROM big ORDER BY y DESC, x LIMIT 5;
ROLLBACK;
PRAGMA integrity_check;
PRAGMA auto_vacuum;
ATTACH '/no/such/directory/file' AS nowhere;
ATTACH ':memory:' AS extra;
CREATE TABLE extra.copy AS SELECT k, v FROM t WHERE k < 50;
SELECT group_concat(k) FROM extra.copy;
DETACH extra;
PRAGMA user_version = 7;
PRAGMA user_version;
.quiet
.damage main.db 2100 900
PRAGMA integrity_check;
SELECT * FROM t ORDER BY v;
.open main.db
SELECT * FROM t;
UPDATE t SET v = v || 'x';
.damage main.db 30000 20000
.open main.db
SELECT count(*), sum(length(b)) FROM t;
SELECT k, v FROM t ORDER BY v;
PRAGMA integrity_check;
DELETE FROM t WHERE k % 3 = 0;
.damage main.db 100 60
.open main.db
SELECT * FROM sqlite_schema;
SELECT * FROM t;
.damage main.db 0 16
.open main.db
SELECT * FROM t;
CREATE TABLE z(a);
.loud
.open other.db
SELECT sum(x) FROM u;
