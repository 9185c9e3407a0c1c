-- Written by write_version_8.py, which says what it is.
PRAGMA application_id=1852137842;
PRAGMA user_version=8;
BEGIN TRANSACTION;
CREATE TABLE idf (
    generation INTEGER PRIMARY KEY,
    checksum INTEGER NOT NULL,  -- of all other columns
    weights BLOB NOT NULL       -- what keywords weigh, JSON, compressed
);
INSERT INTO "idf" VALUES(1,2531561641,X'789C15C6D10980201405D05DEEB7891652BC6DA4AC2452F0597D841B344F33354675BECE8931A6D5661082B3A9B79C2B3F8C10D85D621F03480B6C6109F1F82F95C0E1FC3467069DE08D670F52B2519F4619DD9AB6D3B51178AE1B544B53CA0B75DA1F5C');
CREATE TABLE meta (
    name TEXT PRIMARY KEY,      -- a setting, or a table
    value NOT NULL,             -- a text, or how many rows it has
    checksum INTEGER NOT NULL   -- of name and value, or the sum of those of its rows
) WITHOUT ROWID
;
INSERT INTO "meta" VALUES('area','[14.0, 35.0, 15.0, 36.0]',1470074277);
INSERT INTO "meta" VALUES('idf',1,2531561641);
INSERT INTO "meta" VALUES('next_object_id','33',4275294811);
INSERT INTO "meta" VALUES('objects',21,50122250289);
INSERT INTO "meta" VALUES('outlet',0,0);
INSERT INTO "meta" VALUES('subscriptions',32,66594614364);
INSERT INTO "meta" VALUES('time_ms','19000000',3482470278);
CREATE TABLE objects (
    object_id INTEGER PRIMARY KEY,
    checksum INTEGER NOT NULL,  -- of all other columns
    lon REAL NOT NULL,          -- of a point inside the area, if there is one
    lat REAL NOT NULL,
    keywords TEXT NOT NULL,     -- JSON array; qualified by the tenant, as the next two texts are
    created_ms INTEGER NOT NULL,
    expiry_ms INTEGER NOT NULL,
    payload BLOB NOT NULL,
    object_key TEXT NOT NULL,
    area TEXT NOT NULL,         -- JSON; empty if the object is a point
    owner TEXT NOT NULL         -- empty if whoever published it need not say who it is
);
INSERT INTO "objects" VALUES(1,1910322074,1.40243902439024381578e+01,3.50232558139534901888e+01,'["tea é"]',1000000,51000000,X'00','key é 1','','');
INSERT INTO "objects" VALUES(4,3224380997,1.40975609756097561842e+01,3.5093023255813953654e+01,'["café","ice"]',1000000,51000000,X'00010203','','','');
INSERT INTO "objects" VALUES(6,109491024,1.41513414634146350579e+01,3.51445348837209223811e+01,'["tea é"]',1000000,51000000,X'000102030405','','{"rectangle":[14.146341463414634,35.13953488372093,14.156341463414634,35.149534883720925]}','');
INSERT INTO "objects" VALUES(7,1863507699,1.41707317073170724341e+01,3.5162790697674417117e+01,'["back\\slash","quo\"te"]',1000000,51000000,X'00010203040506','key é 7','','');
INSERT INTO "objects" VALUES(9,3395773475,1.42245121951219495311e+01,35.2143023255814,'["café","ice"]',1000000,51000000,X'000102030405060708','key é 9','{"rectangle":[14.21951219512195,35.2093023255814,14.22951219512195,35.219302325581396]}','');
INSERT INTO "objects" VALUES(11,1780632596,1.42682926829268286184e+01,3.5255813953488370771e+01,'["tea é"]',1000000,51000000,X'000102030405060708090A','key é 11','','');
INSERT INTO "objects" VALUES(12,1555790335,1.42976829268292675583e+01,3.52840697674418635187e+01,'["back\\slash","quo\"te"]',1000000,51000000,X'000102030405060708090A0B','','{"rectangle":[14.292682926829269,35.27906976744186,14.302682926829268,35.28906976744186]}','');
INSERT INTO "objects" VALUES(13,2794097462,1.43170731707317067105e+01,3.5302325581395351151e+01,'["a","b","c"]',1000000,51000000,X'000102030405060708090A0B0C','key é 13','','');
INSERT INTO "objects" VALUES(16,3131654463,1.43902439024390247368e+01,3.5372093023255814614e+01,'["tea é"]',1000000,51000000,X'000102030405060708090A0B0C0D0E0F','','','');
INSERT INTO "objects" VALUES(17,1369933923,1.44146341463414628947e+01,3.5395348837209304805e+01,'["back\\slash","quo\"te"]',1000000,51000000,X'000102030405060708090A0B0C0D0E0F10','key é 17','','');
INSERT INTO "objects" VALUES(18,2067190746,1.44440243902439036105e+01,3.54236046511627904469e+01,'["a","b","c"]',1000000,51000000,X'000102030405060708090A0B0C0D0E0F1011','','{"rectangle":[14.439024390243903,35.41860465116279,14.449024390243903,35.428604651162786]}','');
INSERT INTO "objects" VALUES(19,3554766754,1.44634146341463409868e+01,3.54418604651162780791e+01,'["café","ice"]',1000000,51000000,X'000102030405060708090A0B0C0D0E0F101112','key é 19','','');
INSERT INTO "objects" VALUES(21,3232368011,1.45171951219512180837e+01,3.54933720930232539099e+01,'["tea é"]',1000000,51000000,X'000102030405060708090A0B0C0D0E0F1011121314','key é 21','{"rectangle":[14.512195121951219,35.48837209302326,14.522195121951219,35.49837209302326]}','');
INSERT INTO "objects" VALUES(22,439665813,1.45365853658536590131e+01,3.55116279069767415421e+01,'["back\\slash","quo\"te"]',1000000,51000000,X'000102030405060708090A0B0C0D0E0F101112131415','','','');
INSERT INTO "objects" VALUES(23,3850863232,1.4560975609756097171e+01,3.5534883720930231731e+01,'["a","b","c"]',1000000,51000000,X'000102030405060708090A0B0C0D0E0F10111213141516','key é 23','','');
INSERT INTO "objects" VALUES(24,2270080531,1.45903658536585361109e+01,3.5563139534883717375e+01,'["café","ice"]',1000000,51000000,X'000102030405060708090A0B0C0D0E0F1011121314151617','','{"rectangle":[14.585365853658537,35.55813953488372,14.595365853658537,35.56813953488372]}','');
INSERT INTO "objects" VALUES(27,2182257213,1.46635365853658541368e+01,3.5632906976744180838e+01,'["back\\slash","quo\"te"]',1000000,51000000,X'000102030405060708090A0B0C0D0E0F101112131415161718191A','key é 27','{"rectangle":[14.658536585365853,35.627906976744185,14.668536585365853,35.63790697674418]}','');
INSERT INTO "objects" VALUES(28,3142634747,1.46829268292682932894e+01,3.56511627906976755761e+01,'["a","b","c"]',1000000,51000000,X'000102030405060708090A0B0C0D0E0F101112131415161718191A1B','','','');
INSERT INTO "objects" VALUES(29,3452742302,1.47073170731707314473e+01,3.5674418604651165765e+01,'["café","ice"]',1000000,51000000,X'000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C','key é 29','','');
INSERT INTO "objects" VALUES(31,2388034447,14.9,35.1,'["tea"]',1000000,61000000,X'','key é 3','','');
INSERT INTO "objects" VALUES(32,2406062445,14.5,35.5,'["late"]',19000000,28000000,X'','','','');
CREATE TABLE outlet (
    number INTEGER PRIMARY KEY,
    checksum INTEGER NOT NULL,  -- of all other columns
    action TEXT NOT NULL,
    object_id INTEGER NOT NULL,
    time_ms INTEGER NOT NULL,
    said TEXT NOT NULL,         -- JSON [lon, lat, keywords, ttl_ms] of what was published; else empty
    payload BLOB NOT NULL
);
CREATE TABLE subscriptions (
    device_id TEXT NOT NULL,
    subscription_id INTEGER NOT NULL,
    checksum INTEGER NOT NULL,  -- of all other columns up to spec
    kind INTEGER NOT NULL,
    spec TEXT NOT NULL CHECK (json_valid(spec)),  -- only its kind knows more of it
    heard_ms INTEGER NOT NULL,  -- when the device was heard of last, coarsely
    heard_checksum INTEGER NOT NULL,  -- of device_id and heard_ms
    PRIMARY KEY (device_id, subscription_id)
) WITHOUT ROWID
;
INSERT INTO "subscriptions" VALUES('device 00 é',2,3301076214,1,'{"clauses":[{"required":["sushi","茶"]}],"circle":{"radius_m":123.4,"center":[14.299999999999999,35.3]},"moving":false}',19000000,10657576);
INSERT INTO "subscriptions" VALUES('device 00 é',3,2354514621,1,'{"clauses":[{"required":["ice"]},{"required":["sushi"],"excluded":["tea"]}],"circle":{"radius_m":123.4,"center":[14.299999999999999,35.3]},"moving":false}',19000000,10657576);
INSERT INTO "subscriptions" VALUES('device 01 é',1,4175620998,0,'[["tea é"],2,0.17692307692307693,1,1,[600000,0]]',19000000,3711190701);
INSERT INTO "subscriptions" VALUES('device 01 é',2,1256106009,1,'{"clauses":[{"required":["tea é"]}],"circle":{"radius_m":0.30000000000000004},"moving":true,"window_duration_ms":600000}',19000000,3711190701);
INSERT INTO "subscriptions" VALUES('device 01 é',3,2814788854,1,'{"clauses":[{"required":["ice"]},{"required":["sushi"],"excluded":["tea"]}],"circle":{"radius_m":0.30000000000000004},"moving":true}',19000000,3711190701);
INSERT INTO "subscriptions" VALUES('device 02 é',1,2641291550,0,'[["back\\slash","quo\"te"],3,0.25384615384615383,1,1,[0,1000]]',19000000,1627269731);
INSERT INTO "subscriptions" VALUES('device 02 é',2,656613662,1,'{"clauses":[{"required":["back\\slash","quo\"te"]}],"rectangle":{"bounds":[14.1,35.1,14.433333333333334,35.3]},"moving":false,"window_count":1000}',19000000,1627269731);
INSERT INTO "subscriptions" VALUES('device 02 é',3,2104590264,1,'{"clauses":[{"required":["ice"]},{"required":["sushi"],"excluded":["tea"]}],"rectangle":{"bounds":[14.1,35.1,14.433333333333334,35.3]},"moving":false}',19000000,1627269731);
INSERT INTO "subscriptions" VALUES('device 03 é',2,1830960021,1,'{"clauses":[{"required":["a","b","c"]}],"polygon":{"outer":[[14.1,35.1],[14.2,35.1],[14.1,35.2]],"holes":[[[14.11,35.11],[14.12,35.11],[14.11,35.12]]]},"moving":false}',19000000,3177772006);
INSERT INTO "subscriptions" VALUES('device 03 é',3,2563799590,1,'{"clauses":[{"required":["ice"]},{"required":["sushi"],"excluded":["tea"]}],"polygon":{"outer":[[14.1,35.1],[14.2,35.1],[14.1,35.2]],"holes":[[[14.11,35.11],[14.12,35.11],[14.11,35.12]]]},"moving":false}',19000000,3177772006);
INSERT INTO "subscriptions" VALUES('device 04 é',1,676538557,0,'[["café","ice"],5,0.4076923076923077,1,1,[600000,0]]',19000000,3223057854);
INSERT INTO "subscriptions" VALUES('device 04 é',2,1292472685,1,'{"clauses":[{"required":["café","ice"]}],"circle":{"radius_m":123.4,"center":[14.299999999999999,35.3]},"moving":false,"window_duration_ms":600000}',19000000,3223057854);
INSERT INTO "subscriptions" VALUES('device 04 é',3,53845482,1,'{"clauses":[{"required":["ice"]},{"required":["sushi"],"excluded":["tea"]}],"circle":{"radius_m":123.4,"center":[14.299999999999999,35.3]},"moving":false}',19000000,3223057854);
INSERT INTO "subscriptions" VALUES('device 05 é',1,3431966710,0,'[["sushi","茶"],6,0.48461538461538467,1,1,[0,1000]]',19000000,495791163);
INSERT INTO "subscriptions" VALUES('device 05 é',2,3834840807,1,'{"clauses":[{"required":["sushi","茶"]}],"circle":{"radius_m":0.30000000000000004},"moving":true,"window_count":1000}',19000000,495791163);
INSERT INTO "subscriptions" VALUES('device 05 é',3,681890721,1,'{"clauses":[{"required":["ice"]},{"required":["sushi"],"excluded":["tea"]}],"circle":{"radius_m":0.30000000000000004},"moving":true}',19000000,495791163);
INSERT INTO "subscriptions" VALUES('device 06 é',2,1425926495,1,'{"clauses":[{"required":["tea é"]}],"rectangle":{"bounds":[14.1,35.1,14.433333333333334,35.3]},"moving":false}',19000000,2689024245);
INSERT INTO "subscriptions" VALUES('device 06 é',3,4061391087,1,'{"clauses":[{"required":["ice"]},{"required":["sushi"],"excluded":["tea"]}],"rectangle":{"bounds":[14.1,35.1,14.433333333333334,35.3]},"moving":false}',19000000,2689024245);
INSERT INTO "subscriptions" VALUES('device 07 é',1,3469182478,0,'[["back\\slash","quo\"te"],8,0.6384615384615384,1,1,[600000,0]]',19000000,2110888304);
INSERT INTO "subscriptions" VALUES('device 07 é',2,3977653278,1,'{"clauses":[{"required":["back\\slash","quo\"te"]}],"polygon":{"outer":[[14.1,35.1],[14.2,35.1],[14.1,35.2]],"holes":[[[14.11,35.11],[14.12,35.11],[14.11,35.12]]]},"moving":false,"window_duration_ms":600000}',19000000,2110888304);
INSERT INTO "subscriptions" VALUES('device 07 é',3,397602161,1,'{"clauses":[{"required":["ice"]},{"required":["sushi"],"excluded":["tea"]}],"polygon":{"outer":[[14.1,35.1],[14.2,35.1],[14.1,35.2]],"holes":[[[14.11,35.11],[14.12,35.11],[14.11,35.12]]]},"moving":false}',19000000,2110888304);
INSERT INTO "subscriptions" VALUES('device 08 é',1,1167287965,0,'[["a","b","c"],9,0.7153846153846154,1,1,[0,1000]]',19000000,1520520261);
INSERT INTO "subscriptions" VALUES('device 08 é',2,31141622,1,'{"clauses":[{"required":["a","b","c"]}],"circle":{"radius_m":123.4,"center":[14.299999999999999,35.3]},"moving":false,"window_count":1000}',19000000,1520520261);
INSERT INTO "subscriptions" VALUES('device 08 é',3,1239622226,1,'{"clauses":[{"required":["ice"]},{"required":["sushi"],"excluded":["tea"]}],"circle":{"radius_m":123.4,"center":[14.299999999999999,35.3]},"moving":false}',19000000,1520520261);
INSERT INTO "subscriptions" VALUES('device 09 é',2,1349128909,1,'{"clauses":[{"required":["café","ice"]}],"circle":{"radius_m":0.30000000000000004},"moving":true}',19000000,2268566976);
INSERT INTO "subscriptions" VALUES('device 09 é',3,1651665945,1,'{"clauses":[{"required":["ice"]},{"required":["sushi"],"excluded":["tea"]}],"circle":{"radius_m":0.30000000000000004},"moving":true}',19000000,2268566976);
INSERT INTO "subscriptions" VALUES('device 10 é',1,1770028719,0,'[["sushi","茶"],11,0.8692307692307693,1,1,[600000,0]]',19000000,2645392990);
INSERT INTO "subscriptions" VALUES('device 10 é',2,3154171712,1,'{"clauses":[{"required":["sushi","茶"]}],"rectangle":{"bounds":[14.1,35.1,14.433333333333334,35.3]},"moving":false,"window_duration_ms":600000}',19000000,2645392990);
INSERT INTO "subscriptions" VALUES('device 10 é',3,3927481987,1,'{"clauses":[{"required":["ice"]},{"required":["sushi"],"excluded":["tea"]}],"rectangle":{"bounds":[14.1,35.1,14.433333333333334,35.3]},"moving":false}',19000000,2645392990);
INSERT INTO "subscriptions" VALUES('device 11 é',1,4281526041,0,'[["tea é"],12,0.9461538461538461,1,1,[0,1000]]',19000000,1077651419);
INSERT INTO "subscriptions" VALUES('device 11 é',2,756064885,1,'{"clauses":[{"required":["tea é"]}],"polygon":{"outer":[[14.1,35.1],[14.2,35.1],[14.1,35.2]],"holes":[[[14.11,35.11],[14.12,35.11],[14.11,35.12]]]},"moving":false,"window_count":1000}',19000000,1077651419);
INSERT INTO "subscriptions" VALUES('device 11 é',3,263822109,1,'{"clauses":[{"required":["ice"]},{"required":["sushi"],"excluded":["tea"]}],"polygon":{"outer":[[14.1,35.1],[14.2,35.1],[14.1,35.2]],"holes":[[[14.11,35.11],[14.12,35.11],[14.11,35.12]]]},"moving":false}',19000000,1077651419);
CREATE TRIGGER objects_INSERT AFTER INSERT ON objects BEGIN
    UPDATE meta SET value = value + 1, checksum = checksum + NEW.checksum
    WHERE name = 'objects';
END;
CREATE TRIGGER objects_DELETE AFTER DELETE ON objects BEGIN
    UPDATE meta SET value = value - 1, checksum = checksum - OLD.checksum
    WHERE name = 'objects';
END;
CREATE TRIGGER subscriptions_INSERT AFTER INSERT ON subscriptions BEGIN
    UPDATE meta SET value = value + 1, checksum = checksum + NEW.checksum
    WHERE name = 'subscriptions';
END;
CREATE TRIGGER subscriptions_DELETE AFTER DELETE ON subscriptions BEGIN
    UPDATE meta SET value = value - 1, checksum = checksum - OLD.checksum
    WHERE name = 'subscriptions';
END;
CREATE TRIGGER idf_INSERT AFTER INSERT ON idf BEGIN
    UPDATE meta SET value = value + 1, checksum = checksum + NEW.checksum
    WHERE name = 'idf';
END;
CREATE TRIGGER idf_DELETE AFTER DELETE ON idf BEGIN
    UPDATE meta SET value = value - 1, checksum = checksum - OLD.checksum
    WHERE name = 'idf';
END;
CREATE TRIGGER outlet_INSERT AFTER INSERT ON outlet BEGIN
    UPDATE meta SET value = value + 1, checksum = checksum + NEW.checksum
    WHERE name = 'outlet';
END;
CREATE TRIGGER outlet_DELETE AFTER DELETE ON outlet BEGIN
    UPDATE meta SET value = value - 1, checksum = checksum - OLD.checksum
    WHERE name = 'outlet';
END;
COMMIT;
