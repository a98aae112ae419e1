-- SPDX-License-Identifier: Apache-2.0
--
-- trace.sql - a run as Ringscope writes it to SQLite: every table, column and view.
--
-- Times are integer nanoseconds since the run began (run.base_unix_ns is Unix time of 0). Ids count
-- from 0 and are what other tables point to; NULL says "none" or "unknown". Enumerated numbers stand
-- in the tables enum_*. Everything that a report needs is here: a file read back gives the same one.
-- Sections, in the order in which the exporter runs them: tables; (rows); indexes; views.

-- ## tables

PRAGMA application_id = 1381188428; -- "RSCL"
PRAGMA user_version = 1;            -- of this schema; a reader refuses a higher one

-- One row.
CREATE TABLE run (
    world_size INTEGER NOT NULL,           -- ranks the run had, recorded or not
    base_unix_ns INTEGER NOT NULL,         -- Unix time of 0
    duration_ns INTEGER NOT NULL,
    clock_method TEXT NOT NULL,            -- how the clock domains were put on one axis
    clock_uncertainty_ns INTEGER NOT NULL, -- greatest over domains
    clock_trusted INTEGER NOT NULL,        -- 0, 1
    step_source TEXT NOT NULL,             -- marks, ranges, repetition, none
    incomplete INTEGER NOT NULL,           -- something is missing: ranks.note and warnings say what
    dropped_events INTEGER NOT NULL
);

-- What captures say of their processes: 'RANK/KEY', or 'KEY' for all.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- Every name: of functions, ranges, tensors, threads, files.
CREATE TABLE strings (id INTEGER PRIMARY KEY, text TEXT NOT NULL);

CREATE TABLE enum_kind (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE enum_class (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE enum_collective (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE enum_ending (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE enum_api (id INTEGER PRIMARY KEY, name TEXT NOT NULL);

CREATE TABLE hosts (
    id INTEGER PRIMARY KEY,
    name_id INTEGER NOT NULL REFERENCES strings,
    nic_mbps REAL NOT NULL                 -- nominal, of its fastest card; 0 unknown
);

-- Ranks that share a clock.
CREATE TABLE clock_domains (
    id INTEGER PRIMARY KEY,
    name_id INTEGER NOT NULL REFERENCES strings,
    offset_ns INTEGER NOT NULL,            -- added to its time at its first event
    drift_ppm REAL NOT NULL,
    uncertainty_ns INTEGER NOT NULL        -- of its ticks, and of what joins it to the reference clock
);

CREATE TABLE ranks (
    id INTEGER PRIMARY KEY,
    rank INTEGER NOT NULL,                 -- world rank; -1 unknown
    host_id INTEGER NOT NULL REFERENCES hosts,
    domain_id INTEGER NOT NULL REFERENCES clock_domains,
    pid INTEGER NOT NULL,
    program_id INTEGER NOT NULL REFERENCES strings,
    path_id INTEGER NOT NULL REFERENCES strings, -- the capture
    note_id INTEGER NOT NULL REFERENCES strings, -- why it is incomplete; '' where it is not
    first_ns INTEGER NOT NULL,
    last_ns INTEGER NOT NULL,              -- not clean: when it was last seen alive
    events INTEGER NOT NULL,
    dropped INTEGER NOT NULL,
    ending INTEGER NOT NULL REFERENCES enum_ending, -- clean, exited, aborted, killed, unknown
    missing INTEGER NOT NULL,              -- 1: no capture of this rank was found
    open_event_id INTEGER REFERENCES events -- the call it was in at the end
);

-- Threads and device streams, by rank.
CREATE TABLE tracks (
    id INTEGER PRIMARY KEY,
    rank_id INTEGER NOT NULL REFERENCES ranks,
    name_id INTEGER NOT NULL REFERENCES strings,
    tid INTEGER NOT NULL,                  -- of a device stream that CUPTI told of: CUPTI's number of it
    device INTEGER NOT NULL                -- 1: a device stream
);

CREATE TABLE communicators (
    id INTEGER PRIMARY KEY,
    identity INTEGER NOT NULL,             -- 64 bits, equal on all members
    parent INTEGER NOT NULL,               -- identity of the parent, 0 none
    api INTEGER NOT NULL,                  -- 1 MPI, 2 NCCL, 3 Gloo, 4 MPI window, 5 MPI file (enum rs_comm_api)
    size INTEGER NOT NULL,
    members INTEGER NOT NULL,              -- rows in communicator_members that there could be
    name_id INTEGER NOT NULL REFERENCES strings
);

CREATE TABLE communicator_members (
    communicator_id INTEGER NOT NULL REFERENCES communicators,
    member INTEGER NOT NULL,               -- rank in the communicator
    rank_id INTEGER NOT NULL REFERENCES ranks,
    PRIMARY KEY (communicator_id, member)
) WITHOUT ROWID;

-- What events are, without when and where.
CREATE TABLE signatures (
    id INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL REFERENCES enum_kind,
    class INTEGER NOT NULL REFERENCES enum_class,
    collective INTEGER NOT NULL REFERENCES enum_collective,
    api INTEGER NOT NULL REFERENCES enum_api,
    op INTEGER NOT NULL,                   -- number in the operation tables, 0 none; what CUPTI told:
                                           -- 6 kernel, 8 copy, 9 set, 10 wait, 11 graph, 12 host's call
    member INTEGER NOT NULL,               -- own rank in the communicator + 1, where one process holds several
    name_id INTEGER NOT NULL REFERENCES strings,
    datatype_id INTEGER NOT NULL REFERENCES strings,
    reduction_id INTEGER NOT NULL REFERENCES strings,
    communicator_id INTEGER REFERENCES communicators,
    peer INTEGER NOT NULL,                 -- root, destination, source; -1 none, -2 any
    tag INTEGER NOT NULL,
    range_domain_id INTEGER NOT NULL REFERENCES strings, -- of a kernel: the compiler's name of it
    range_category_id INTEGER NOT NULL REFERENCES strings, -- of a device's work: graph and node
    color INTEGER NOT NULL,                -- ARGB
    count INTEGER NOT NULL,                -- elements as passed
    bytes INTEGER NOT NULL                 -- S of nccl-tests for a collective; payload of a message
);

-- By track, then time. flags: 1 failed, 2 had not ended when the capture did, 4 graph-captured,
-- 8 in place, 16 seq is a collective's number, 32 recovered from a dead process.
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    track_id INTEGER NOT NULL REFERENCES tracks,
    signature_id INTEGER NOT NULL REFERENCES signatures,
    start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    depth INTEGER NOT NULL,                -- ranges: nesting on their thread
    seq INTEGER NOT NULL,                  -- collective's number; counters: bits of a float; what CUPTI told:
                                           -- its correlation
    link_event_id INTEGER                  -- what completed a nonblocking start; a device interval's call; of a
                                           -- kernel, copy or wait that CUPTI told of: the host's call
);

-- Samples of counters, decoded.
CREATE TABLE counters (event_id INTEGER PRIMARY KEY REFERENCES events, value REAL);

-- What a program attached to ranges and marks: fields of NVTX payloads, nested ones as 'outer.inner'.
CREATE TABLE event_args (
    event_id INTEGER NOT NULL REFERENCES events,
    position INTEGER NOT NULL,             -- 0, 1, ... in the order of the payload
    schema_id INTEGER NOT NULL REFERENCES strings, -- name of the layout; '' a single number
    name_id INTEGER NOT NULL REFERENCES strings,
    type INTEGER NOT NULL,                 -- 1 unsigned, 2 signed (of 64 bits, stored as signed), 3 real, 4 text
    value NUMERIC,                         -- NULL: of a text, or not finite
    text_id INTEGER NOT NULL REFERENCES strings, -- the text, or what the number means
    PRIMARY KEY (event_id, position)
) WITHOUT ROWID;

-- Collectives over all their ranks. Arrivals are those of the members present.
CREATE TABLE instances (
    id INTEGER PRIMARY KEY,
    communicator_id INTEGER NOT NULL REFERENCES communicators,
    seq INTEGER NOT NULL,
    signature_id INTEGER NOT NULL REFERENCES signatures,
    present INTEGER NOT NULL,              -- members whose events are there
    first_arrival_ns INTEGER NOT NULL,
    last_arrival_ns INTEGER NOT NULL,
    last_end_ns INTEGER NOT NULL,
    last_rank_id INTEGER REFERENCES ranks, -- the last to arrive
    step_id INTEGER REFERENCES steps,
    complete INTEGER NOT NULL,
    timed INTEGER NOT NULL,                -- 0: an NCCL call without device interval, an enqueue
    warmup INTEGER NOT NULL,
    mismatched INTEGER NOT NULL            -- members disagree on what they do
);

CREATE TABLE instance_members (
    instance_id INTEGER NOT NULL REFERENCES instances,
    member INTEGER NOT NULL,
    event_id INTEGER NOT NULL REFERENCES events,
    PRIMARY KEY (instance_id, member)
) WITHOUT ROWID;

-- Agreements on a tensor (Horovod's NEGOTIATE_*), over all ranks.
CREATE TABLE rendezvous (
    id INTEGER PRIMARY KEY,
    name_id INTEGER NOT NULL REFERENCES strings,
    occurrence INTEGER NOT NULL,
    present INTEGER NOT NULL,
    first_arrival_ns INTEGER NOT NULL,
    last_arrival_ns INTEGER NOT NULL,
    last_end_ns INTEGER NOT NULL,
    last_rank_id INTEGER REFERENCES ranks,
    step_id INTEGER REFERENCES steps
);

CREATE TABLE rendezvous_members (
    rendezvous_id INTEGER NOT NULL REFERENCES rendezvous,
    rank_id INTEGER NOT NULL REFERENCES ranks,
    event_id INTEGER NOT NULL REFERENCES events,
    PRIMARY KEY (rendezvous_id, rank_id)
) WITHOUT ROWID;

-- Point-to-point, matched.
CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    send_event_id INTEGER REFERENCES events,
    recv_event_id INTEGER REFERENCES events,
    src_rank_id INTEGER REFERENCES ranks,
    dst_rank_id INTEGER REFERENCES ranks,
    bytes INTEGER NOT NULL,
    both_ns INTEGER NOT NULL,              -- when both sides had arrived
    end_ns INTEGER NOT NULL,               -- when the receiver had it
    step_id INTEGER REFERENCES steps,
    timed INTEGER NOT NULL                 -- both sides known, and their times are the transfer's
);

CREATE TABLE steps (
    id INTEGER PRIMARY KEY,
    number INTEGER NOT NULL,
    complete INTEGER NOT NULL,             -- all ranks have its beginning and end
    start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL
);

CREATE TABLE step_spans (
    step_id INTEGER NOT NULL REFERENCES steps,
    rank_id INTEGER NOT NULL REFERENCES ranks,
    start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL,
    PRIMARY KEY (step_id, rank_id)
) WITHOUT ROWID;

CREATE TABLE warnings (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL,
    offset INTEGER NOT NULL,
    text TEXT NOT NULL
);

-- Results of the analyses, as in `ringscope report`.
CREATE TABLE findings (
    id INTEGER PRIMARY KEY,                -- what ended the run, then dearest first
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    severity TEXT NOT NULL,                -- high, medium, low
    confidence REAL NOT NULL,              -- 0 to 1
    cost_s REAL NOT NULL,
    cost_percent REAL NOT NULL,
    t_start_s REAL NOT NULL,
    t_end_s REAL NOT NULL,
    remedy TEXT NOT NULL
);
CREATE TABLE finding_ranks (finding_id INTEGER NOT NULL REFERENCES findings, rank INTEGER NOT NULL);
CREATE TABLE finding_hosts (finding_id INTEGER NOT NULL REFERENCES findings, host TEXT NOT NULL);
CREATE TABLE finding_communicators (finding_id INTEGER NOT NULL REFERENCES findings, identity INTEGER NOT NULL);
CREATE TABLE finding_steps (finding_id INTEGER NOT NULL REFERENCES findings, step INTEGER NOT NULL);
CREATE TABLE finding_evidence (finding_id INTEGER NOT NULL REFERENCES findings, position INTEGER NOT NULL, text TEXT NOT NULL);

-- wall = compute + comm_exposed + wait + io + idle; comm_hidden is part of compute.
CREATE TABLE breakdown (
    rank_id INTEGER NOT NULL REFERENCES ranks,
    step_id INTEGER REFERENCES steps,      -- NULL: the whole run
    wall_ns INTEGER NOT NULL,
    compute_ns INTEGER NOT NULL,
    comm_exposed_ns INTEGER NOT NULL,
    comm_hidden_ns INTEGER NOT NULL,
    wait_ns INTEGER NOT NULL,
    io_ns INTEGER NOT NULL,
    idle_ns INTEGER NOT NULL
);

-- Medians leave warm-ups out; bandwidths in bytes/s, NULL where there is none.
CREATE TABLE collective_metrics (
    collective INTEGER NOT NULL REFERENCES enum_collective,
    api INTEGER NOT NULL REFERENCES enum_api,
    device INTEGER NOT NULL,
    size_class INTEGER,                    -- k of [2^k, 2^(k+1)) bytes; NULL: no bytes
    count INTEGER NOT NULL,
    timed INTEGER NOT NULL,
    sampled INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    call_ns INTEGER, wait_ns INTEGER, transfer_ns INTEGER,
    wait_ns_sum INTEGER NOT NULL, transfer_ns_sum INTEGER NOT NULL,
    algbw_call REAL, algbw_transfer REAL, busbw_call REAL, busbw_transfer REAL
);

CREATE TABLE link_metrics (
    src_host_id INTEGER NOT NULL REFERENCES hosts,
    dst_host_id INTEGER NOT NULL REFERENCES hosts,
    messages INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    busy_ns INTEGER NOT NULL,
    big_messages INTEGER NOT NULL,
    big_from_bytes INTEGER NOT NULL,
    bandwidth REAL,                        -- bytes/s: upper quartile by bytes over spells of transfer
    best_bandwidth REAL
);

CREATE TABLE not_applicable (analysis TEXT NOT NULL, reason TEXT NOT NULL);

-- ## indexes

CREATE INDEX events_by_track ON events (track_id, start_ns);
CREATE INDEX events_by_signature ON events (signature_id);
CREATE INDEX instances_by_communicator ON instances (communicator_id, seq);
CREATE INDEX instance_members_by_event ON instance_members (event_id);
CREATE INDEX messages_by_ranks ON messages (src_rank_id, dst_rank_id);

-- ## views

-- Every slice with its names: what a timeline shows.
CREATE VIEW slices AS
SELECT e.id AS event_id, r.rank, h.text AS host, tn.text AS track, k.name AS kind, n.text AS name,
       e.start_ns, e.end_ns, (e.end_ns - e.start_ns) AS duration_ns, s.bytes, s.count,
       d.text AS datatype, s.communicator_id, CASE WHEN e.flags & 16 THEN e.seq END AS seq, s.peer,
       s.tag, (e.flags & 2) <> 0 AS unfinished
FROM events e
JOIN signatures s ON s.id = e.signature_id
JOIN strings n ON n.id = s.name_id
JOIN strings d ON d.id = s.datatype_id
JOIN enum_kind k ON k.id = s.kind
JOIN tracks t ON t.id = e.track_id
JOIN strings tn ON tn.id = t.name_id
JOIN ranks r ON r.id = t.rank_id
JOIN hosts ho ON ho.id = r.host_id
JOIN strings h ON h.id = ho.name_id;

-- What CUPTI told of devices, with the host's call that caused it.
CREATE VIEW device_activities AS
SELECT e.id AS event_id, r.rank, tn.text AS track,
       CASE s.op WHEN 6 THEN 'kernel' WHEN 8 THEN 'copy' WHEN 9 THEN 'set' WHEN 11 THEN 'graph' END AS what,
       n.text AS name, e.start_ns, e.end_ns, (e.end_ns - e.start_ns) AS duration_ns, s.bytes,
       e.seq AS correlation, g.text AS graph, e.link_event_id AS call_event_id, cn.text AS call,
       s.class <> 0 AS communicates
FROM events e
JOIN signatures s ON s.id = e.signature_id AND s.op IN (6, 8, 9, 11)
JOIN strings n ON n.id = s.name_id
JOIN strings g ON g.id = s.range_category_id
JOIN tracks t ON t.id = e.track_id AND t.device
JOIN strings tn ON tn.id = t.name_id
JOIN ranks r ON r.id = t.rank_id
LEFT JOIN events c ON c.id = e.link_event_id
LEFT JOIN signatures cs ON cs.id = c.signature_id
LEFT JOIN strings cn ON cn.id = cs.name_id;

-- Each rank's part in each collective: how long it waited for the last one to arrive.
CREATE VIEW collective_waits AS
SELECT i.id AS instance_id, i.communicator_id, i.seq, c.name AS operation, s.bytes, r.rank,
       e.start_ns AS arrival_ns, MAX(i.last_arrival_ns - e.start_ns, 0) AS wait_ns,
       i.last_end_ns - i.last_arrival_ns AS transfer_ns, lr.rank AS last_rank, st.number AS step
FROM instances i
JOIN instance_members m ON m.instance_id = i.id
JOIN events e ON e.id = m.event_id
JOIN tracks t ON t.id = e.track_id
JOIN ranks r ON r.id = t.rank_id
JOIN signatures s ON s.id = i.signature_id
JOIN enum_collective c ON c.id = s.collective
LEFT JOIN ranks lr ON lr.id = i.last_rank_id
LEFT JOIN steps st ON st.id = i.step_id
WHERE i.complete AND i.timed;

-- How often each rank was the last to arrive, and how long the others waited then.
CREATE VIEW last_arrivals AS
SELECT last_rank AS rank, COUNT(DISTINCT instance_id) AS times_last, SUM(wait_ns) AS waited_ns
FROM collective_waits GROUP BY last_rank ORDER BY waited_ns DESC;

-- Messages with ranks and bandwidth.
CREATE VIEW message_list AS
SELECT m.id AS message_id, a.rank AS src, b.rank AS dst, m.bytes, m.both_ns, m.end_ns,
       CASE WHEN m.timed AND m.end_ns > m.both_ns
            THEN m.bytes * 1e9 / (m.end_ns - m.both_ns) END AS bytes_per_s, st.number AS step
FROM messages m
LEFT JOIN ranks a ON a.id = m.src_rank_id
LEFT JOIN ranks b ON b.id = m.dst_rank_id
LEFT JOIN steps st ON st.id = m.step_id;

-- The breakdown in seconds.
CREATE VIEW time_per_rank AS
SELECT r.rank, st.number AS step, b.wall_ns / 1e9 AS wall_s, b.compute_ns / 1e9 AS compute_s,
       b.comm_exposed_ns / 1e9 AS communication_exposed_s,
       b.comm_hidden_ns / 1e9 AS communication_hidden_s, b.wait_ns / 1e9 AS wait_s,
       b.io_ns / 1e9 AS io_s, b.idle_ns / 1e9 AS idle_s
FROM breakdown b
JOIN ranks r ON r.id = b.rank_id
LEFT JOIN steps st ON st.id = b.step_id;

-- Time in each function or range, per rank.
CREATE VIEW time_per_name AS
SELECT rank, kind, name, COUNT(*) AS calls, SUM(duration_ns) AS total_ns,
       MIN(duration_ns) AS min_ns, MAX(duration_ns) AS max_ns
FROM slices GROUP BY rank, kind, name;
