-- SPDX-License-Identifier: MIT OR Apache-2.0
CREATE TABLE word(w TEXT, n INT);
INSERT INTO word SELECT 'w' || (value * 7919 % 1009), value FROM primes(1200);
CREATE INDEX backward ON word(w COLLATE BACKWARDS);
CREATE INDEX pausing ON word(w COLLATE PAUSING);
SELECT w FROM word ORDER BY w COLLATE BACKWARDS LIMIT 20;
SELECT count(DISTINCT w COLLATE PAUSING) FROM word;
SELECT w FROM word WHERE w > 'w5' COLLATE PAUSING ORDER BY w COLLATE PAUSING LIMIT 20;
SELECT a.w, b.w FROM word a JOIN word b ON a.w = b.w COLLATE PAUSING AND a.n <> b.n ORDER BY 1, 2 LIMIT 10;
SELECT w, pause(n), joined(w, n, n / 7.0, NULL, x'41'), squares(n) OVER (ORDER BY n ROWS 2 PRECEDING) FROM word WHERE pause(n) < 60;
SELECT joined(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30);
SELECT squares(n), squares(pause(n)) FROM word;
SELECT run('SELECT count(*) FROM word WHERE n < ' || n) FROM word WHERE n < 100;
SELECT run('SELECT sum(run(''SELECT '' || value || '' * 2'')) FROM primes(60)');
SELECT below(n, 'SELECT group_concat(value) FROM primes(' || (n % 50) || ')') FROM word WHERE n < 200;
SELECT below(5000, 'SELECT below(5000, ''SELECT below(5000, ''''SELECT pause(count(*)) FROM word'''')'')');
SELECT below(300, 'SELECT fail(1, ''at the bottom'')');
CREATE TEMP TABLE loop(n);
CREATE TEMP TRIGGER again AFTER INSERT ON loop WHEN new.n > 0 BEGIN INSERT INTO loop VALUES (pause(new.n) - 1); END;
PRAGMA recursive_triggers = on;
INSERT INTO loop VALUES (300);
SELECT count(*), min(n), max(n) FROM loop;
INSERT INTO loop VALUES (3000);
SELECT count(*) FROM loop;
CREATE TEMP TRIGGER nested AFTER DELETE ON loop BEGIN SELECT run('SELECT ' || old.n || ' + count(*) FROM word'); END;
DELETE FROM loop WHERE n < 50;
WITH RECURSIVE down(i, x) AS (SELECT 1, 'SELECT 1' UNION ALL SELECT i + 1, 'SELECT run(''' || replace(x, '''', '''''') || ''')' FROM down WHERE i < 14) SELECT i, run(x) FROM down;
.progress 50
SELECT count(*) FROM word a, word b WHERE a.n = b.n + 2;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT sum(i) FROM n;
.progress 0
SELECT value, run('INSERT INTO word VALUES (''nested'', ' || value || ')') FROM primes(10);
SELECT count(*) FROM word WHERE w = 'nested';
