-- SPDX-License-Identifier: MIT OR Apache-2.0
-- A bit of everything in memory; what the overhead is measured with.
.quiet
CREATE TABLE a(id INTEGER PRIMARY KEY, x INT, y TEXT, z REAL);
CREATE TABLE b(id INTEGER PRIMARY KEY, a INT, w TEXT);
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 8000) INSERT INTO a SELECT i, i * 7919 % 10007, printf('%05d text %x', i * 31 % 997, i), i / 7.0 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000) INSERT INTO b SELECT i, i * 13 % 8000 + 1, substr('abcdefghijklmnopqrstuvwxyz', i % 20, 6) || i FROM n;
COMMIT;
CREATE INDEX ax ON a(x);
CREATE INDEX ay ON a(y, z);
CREATE INDEX bw ON b(w);
SELECT x % 10, count(*), sum(z), avg(x), max(y) FROM a GROUP BY 1;
SELECT a.y, b.w FROM a JOIN b ON b.a = a.id WHERE a.x BETWEEN 1000 AND 3000 ORDER BY b.w, a.y;
SELECT count(*) FROM a WHERE y LIKE '%99%' OR y GLOB '*a?';
SELECT id, (SELECT count(*) FROM a t WHERE t.x < a.x AND t.x > a.x - 50) FROM a WHERE id % 4 = 0;
SELECT id, sum(x) OVER (ORDER BY id ROWS 10 PRECEDING), rank() OVER (PARTITION BY x % 50 ORDER BY z) FROM a;
UPDATE a SET z = z * 1.5, x = x + 1 WHERE x % 3 = 0;
DELETE FROM b WHERE w < 'd';
SELECT json_extract(j, '$.b[1]'), length(j) FROM (SELECT json_object('a', x, 'b', json_array(id, y)) AS j FROM a LIMIT 4000);
WITH RECURSIVE c(n) AS (VALUES (27) UNION ALL SELECT CASE n % 2 WHEN 0 THEN n / 2 ELSE 3 * n + 1 END FROM c WHERE n > 1) SELECT count(*), max(n) FROM c;
SELECT upper(w), replace(w, 'e', 'E'), instr(w, '7'), printf('%d:%.3f:%s', id, a / 3.0, w) FROM b;
CREATE TABLE item(id INTEGER PRIMARY KEY);
INSERT INTO item SELECT value FROM primes(3000);
.deep or 900
.deep function 900
.deep in 3000
SELECT squares(x), squares(z) FROM a;
SELECT DISTINCT substr(y, 1, 3) FROM a ORDER BY y COLLATE BACKWARDS;
PRAGMA integrity_check;
