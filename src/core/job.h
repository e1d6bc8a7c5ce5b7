/*
 * Job control: how workers, a server and the switches between them become a job, and stop being
 * one.
 *
 * A worker sends JOIN to the server until it hears back. Every switch on the way that is sure to
 * see all of the worker's packets adds its address. When the last worker of the job has joined, the
 * server makes a tree of those switches (job_tree.h), tells each switch its place and its members
 * (INSTALL, one packet per member), and when all have confirmed, WELCOMEs every worker. From then
 * on workers report (READY), which also tells the server that they live; INSTALL is repeated, which
 * tells a switch that the job lives, and the server that the switch does.
 *
 * An epoch is one tree and one set of workers. It ends when a worker comes back by another way, or
 * the server restarts: workers report what they expect (JOIN), and a new epoch begins at the
 * smallest. It fails when a worker is lost: all others are told (FAILED), and to go on, all join
 * again.
 *
 * All packets of job control are as long as a header, repeatable, and safe in any order: what they
 * are about is named by job, epoch and incarnation. Those for a switch travel to a worker below it.
 */
#ifndef GW_CORE_JOB_H
#define GW_CORE_JOB_H

#include "core/pkt.h"

/* Of the workers of a job. */
enum {
    GW_WORLD_MAX = 1024, /* how many */
    GW_RANK_NONE = UINT16_MAX,
};

/* Of the servers of a job. */
enum {
    GW_JOB_SHARDS_MAX = 16,
};

/* Of the tree of switches that adds up a job. */
enum {
    GW_FAN_IN_MAX = 32, /* positions below a switch: bits of a bitmap */
    GW_LEVELS_MAX = 3,
};

/*
 * A job is its key and its name, and so is its number: who holds one key cannot say the number of
 * another key's job, since whoever he attaches to compares (net/attach/neighbours.h). The bits of
 * the key have no meaning here, and in simulations they are 0.
 */
enum {
    GW_JOB_KEY_BITS = 12,
    GW_JOB_NAME_BITS = 32 - GW_JOB_KEY_BITS,
};

/* The number of a job, never 0, of the low bits of both. */
uint32_t gw_job_number(uint32_t key, uint32_t name);

/* The bits of its key. */
uint32_t gw_job_key(uint32_t number);

/*
 * The sums of a job may be divided over several servers: each has a *shard*, which is a job of its
 * own to switches and job control. Its number, of the same key; that of shard 0 is the job's.
 */
uint32_t gw_job_shard(uint32_t job, uint32_t shard);

/* The number of the same shard for sums that its server makes alone, past switches. */
uint32_t gw_job_shard_direct(uint32_t shard_job);

/* Whether `number` is that of a shard of the job, by either way. */
bool gw_job_has_shard(uint32_t job, uint32_t number);

/*
 * What a packet of kind GW_PKT_JOB says. In all: flow: job; key: incarnation, a random number of
 * the life of the worker (of the server in packets to and from switches), echoed in answers; epoch:
 * 0 when there is none.
 */
enum gw_job_op {
    /* Worker to server. seq: first fragment without result; index: rank, or GW_RANK_NONE for any;
     * epoch: the worker's last; scale: GW_JOB_PATH_*; q.flags: gw_notice_option, shifted;
     * word: the switches on the way. */
    GW_JOB_JOIN,
    /* Server to worker. index: enum gw_job_reason; word[0]: rank or switch that it is about. */
    GW_JOB_REFUSED,
    /* Server to switch word[2], by way of a worker below. index: number of the member, which is its
     * position's if it has one; seq: how many there are; word[0]: its address; word[1]:
     * gw_job_spot, and how many workers are behind the position; 0: it has none. */
    GW_JOB_INSTALL,
    /* Switch to server. seq: members known; index: enum gw_job_reason; word[2]: the switch. */
    GW_JOB_INSTALLED,
    /* Server to switch word[2], by way of a worker below: forget the job. Answered by INSTALLED
     * with seq 0. */
    GW_JOB_REMOVE,
    /* Server to worker. seq: first fragment of the epoch; index: share of static indexing; scale:
     * exponent or GW_SCALE_DECIMAL, as int8_t; word: struct gw_job_terms. */
    GW_JOB_WELCOME,
    /* Worker to server, again and again. seq: first fragment without result; index: rank. */
    GW_JOB_READY,
    /* Server to worker: your epoch is to end, or I do not know it: join. */
    GW_JOB_REPORT,
    /* Worker to server: no more of me. index: rank; seq: first fragment without result. Answered by
     * LEFT. */
    GW_JOB_LEAVE,
    GW_JOB_LEFT,
    /* Server to worker: the epoch is over. index: enum gw_job_reason; word[0]: rank that was lost.
     */
    GW_JOB_FAILED,
    GW_JOB_OPS,
};

/* Why there is no job, or no more. */
enum gw_job_reason {
    GW_JOB_OK,
    GW_JOB_FULL,     /* all ranks are taken */
    GW_JOB_RANK,     /* the rank is taken, or not below the number of workers */
    GW_JOB_TREE,     /* too many workers or switches below one switch, or too many levels */
    GW_JOB_PATH,     /* the ways of the workers do not make a tree */
    GW_JOB_ROOM,     /* a switch has no room for the job */
    GW_JOB_TAKEN,    /* a switch knows another job of the same number */
    GW_JOB_LOST,     /* a worker is silent */
    GW_JOB_LIMIT,    /* the terms exceed what the worker was made for */
    GW_JOB_SILENT,   /* the server is */
    GW_JOB_STALLED,  /* no result for too long */
    GW_JOB_OVERFLOW, /* a sum does not fit its type */
    GW_JOB_MISMATCH, /* workers reduce different tensors */
    GW_JOB_NOTICE,   /* workers announce their bursts differently, or above the largest threshold;
                        about: the rank that differs, or GW_RANK_NONE */
    GW_JOB_BROKEN,   /* a rank does not keep to the protocol */
    GW_JOB_BOUND,    /* more results are missing than a rank allows: others state other bounds */
    GW_JOB_REASONS,
};

/* JOIN's `scale`: what is known of the way so far. */
enum {
    GW_JOB_PATH_COUNT = 3,      /* mask: switches in `word` */
    GW_JOB_PATH_SPREAD = 4,     /* there were several ways on: not every packet comes by here */
    GW_JOB_PATH_FRESH = 8,      /* the worker has nothing to go on with: `seq` means nothing */
    GW_JOB_PATH_UNTOUCHED = 16, /* it has calls in work, and no result since it was fresh */
    GW_JOB_PATH_FLAGS = 31,
};

/* JOIN's `q.flags`: how the worker wants bursts announced, in the bits that no other packet has. */
enum {
    GW_JOB_OPTION_SHIFT = 3, /* of enum gw_notice_option */
};

/* Where a switch is in the tree: most of INSTALL's word[1]. */
struct gw_job_spot {
    uint8_t level;    /* 2 bits */
    uint8_t partials; /* enum gw_agg_partials */
    uint8_t fan_in;   /* positions below it: 6 bits */
    uint8_t above[2]; /* 5 bits each */
};

/* What a worker must know, as WELCOME's words. */
struct gw_job_terms {
    uint16_t rank;
    uint16_t world;       /* 1 to GW_WORLD_MAX */
    uint16_t values;      /* elements per fragment */
    uint16_t aggregators; /* less 1 */
    uint8_t level;
    uint8_t position; /* bit of the bitmap, if level is 0 */
    uint8_t above[2]; /* 5 bits each; position takes 5 too, rank and world take 10 */
    uint16_t window;  /* the largest one, less 1 */
    uint8_t indexing;
    uint8_t hashing;
    uint8_t notice; /* threshold that bursts are announced with, in units; 0: they are not */
};

/* Sentence for a reason, without full stop. */
const char *gw_job_reason_text(enum gw_job_reason reason);

/* `workers`, in 11 bits: behind a position, or 0. Two bits of the word are always 0. */
uint32_t gw_job_spot_pack(const struct gw_job_spot *spot, uint32_t workers);
struct gw_job_spot gw_job_spot_unpack(uint32_t word, uint32_t *workers);

void gw_job_terms_pack(const struct gw_job_terms *terms, uint32_t word[3]);
struct gw_job_terms gw_job_terms_unpack(const uint32_t word[3]);

#endif
