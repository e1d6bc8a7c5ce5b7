/*
 * The bytes of the attach protocol, by which two neighbours on the overlay agree on a session.
 *
 * All messages of a version are equally long, in this one 148 bytes, so that an answer is never
 * longer than the question. Numbers are big-endian.
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +-------------------------------+-------+-------+---------------+
 *   0 |           magic "GW"          |version| 7     |     step      |
 *     +-------------------------------+-------+-------+---------------+
 *   4 |            session: random number of the initiator            |
 *  20 |              proof: what the responder wants back             |
 *     +---------------------------------------------------------------+
 *  36 |                    cookie in packets to me                    |
 *     +---------------------------------------------------------------+
 *  44 |                          my address                           |
 *     +---------------------------------------------------------------+
 *  48 |                    job; 0: I am of no job                    |
 *     +-------------------------------+-------------------------------+
 *  52 |        workers of the job     |              rank             |
 *     +---------------+---------------+-------------------------------+
 *  56 |R|    flags    |    notice     |   source ports that I send by |
 *     +---------------+---------------+-------------------------------+
 *  60 |                    number of the question                     |
 *     +---------------------------------------------------------------+
 *  64 |                        name of the key                        |
 *     +---------------------------------------------------------------+
 *  72 |   ASK: random number of the initiator's life; REFUSE: reason   |
 *     +---------------------------------------------------------------+
 *  76 |     ACCEPT: group by which results come to many at once       |
 *     |   ASK: sum of the table of ranks that I have; 0: none; zeros   |
 *     +---------------------------------------------------------------+
 *  92 |             ACCEPT: cookie in packets to the group            |
 *     |    ASK: cookie in packets to you; 0: you have told me none    |
 *     +-------------------------------+-------------------------------+
 * 100 |   ACCEPT: port of the group   |   payload of a full packet    |
 *     +-------------------------------+-------------------------------+
 * 104 |      my way: rate of its slowest link, kb/s; 0: no limit      |
 *     +-------------------------------+-------------------------------+
 * 108 |  my way: round trip, 20 us    |  ASK: round trip to you, 20 us |
 *     +-------------------------------+-------------------------------+
 * 112 |       ASK, ACCEPT: the switch of my way that is silent        |
 *     +-------------------------------+-------------------------------+
 * 128 |      its port; 0: none is     |   for so long, milliseconds   |
 *     +-------------------------------+-------------------------------+
 * 132 |                    code of authentication                     |
 *     +---------------------------------------------------------------+
 *
 * R is the role. The initiator repeats ASK. The responder answers CHALLENGE and remembers nothing,
 * until the proof comes back: so nobody uses another's address. Then it answers ACCEPT, every time.
 *
 * Every question has a number, larger than that of the one before, and every answer repeats it: so
 * neither what was asked nor what was answered counts twice, and the initiator measures the round
 * trip, and tells it in its next question. ASK also repeats the responder's cookie, so that one who
 * has restarted sees that he has forgotten a session. Both tell their *way*: from them to the top
 * of the switches that their packets pass, hosts not included. If a switch of it is silent, they
 * tell its address (IPv4 as ::ffff:a.b.c.d), so that whoever waits in vain can say for whom. A host
 * that answers also tells of the ways of others of the job that it is asked for.
 *
 * `notice` is how the job's bursts are announced, as in a JOIN (core/notice.h); who meets others of
 * its job refuses those that announce differently.
 *
 * A responder that multicasts tells the group's address (IPv4 as ::ffff:a.b.c.d) in ACCEPT, and
 * sends PROBE to the group, with the group's cookie. Who hears it says so in ASK.
 */
#ifndef GW_WIRE_ATTACH_H
#define GW_WIRE_ATTACH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

enum {
    GW_ATTACH_SIZE = 148,
    GW_ATTACH_SIGNED = 132,  /* bytes that the code covers; it is the rest */
    GW_ATTACH_SIZE_MIN = 80, /* of a message of another version */
    GW_ATTACH_SIZE_MAX = 148,
    GW_ATTACH_CODE_SIZE = 16,
    GW_ATTACH_NONCE_SIZE = 16,
    GW_ATTACH_GROUP_SIZE = 16,
    GW_ATTACH_PLACE_SIZE = 16,
    GW_ATTACH_KIND = 7, /* beside those of packets */
};

#define GW_ATTACH_RTT_UNIT (20 * GW_US)
#define GW_ATTACH_RTT_MAX  (UINT16_MAX * GW_ATTACH_RTT_UNIT) /* 1.3 s; longer ones say this */

enum gw_attach_step {
    GW_ATTACH_ASK,       /* initiator: let me in; with the proof, if it has one */
    GW_ATTACH_CHALLENGE, /* responder: send this back */
    GW_ATTACH_ACCEPT,    /* responder: you are in */
    GW_ATTACH_REFUSE,    /* responder: no, for `reason`; for VERSION, `job` is its version */
    GW_ATTACH_DETACH,    /* either: the session is over */
    GW_ATTACH_PROBE,     /* responder, to a group: who hears this? */
    GW_ATTACH_STEPS,
};

enum gw_attach_role {
    GW_ATTACH_HOST,
    GW_ATTACH_SWITCH,
    GW_ATTACH_ROLES,
};

enum {
    GW_ATTACH_NOTICES = 32, /* ways to announce bursts */
};

enum gw_attach_flag {
    GW_ATTACH_DIRECT = 1,        /* I have no switch: my packets come straight from me, and to me */
    GW_ATTACH_AUTHENTICATED = 2, /* packets between us are authenticated */
    GW_ATTACH_HEARS = 4,         /* of ASK: what you send to the group that you told me arrives */
    GW_ATTACH_TABLE = 8,         /* you are my job's registrar: send me the table of ranks */
    GW_ATTACH_ENCRYPTED = 16,    /* and encrypted; never without AUTHENTICATED */
    GW_ATTACH_AGAIN = 32, /* of TABLE: I had a seat with you, or with the registrar before you */
    GW_ATTACH_FLAGS = 63, /* there is room for seven */
};

enum gw_attach_reason {
    GW_ATTACH_OK,      /* the only one but in a refusal */
    GW_ATTACH_VERSION, /* of the protocol */
    GW_ATTACH_KEY,     /* not known */
    GW_ATTACH_ROOM,
    GW_ATTACH_ENDED,          /* the session is over: begin another */
    GW_ATTACH_MTU,            /* packets too long */
    GW_ATTACH_JOB,            /* no room for the job, or none of ours */
    GW_ATTACH_TAKEN,          /* the address is another's, perhaps for no longer: try again */
    GW_ATTACH_SELF,           /* the address is the responder's own */
    GW_ATTACH_AUTHENTICATION, /* one of the two authenticates packets, the other does not */
    GW_ATTACH_CLOSING,
    GW_ATTACH_NOTICE,  /* of the job, but it announces bursts differently */
    GW_ATTACH_RANK,    /* of the job is another's, perhaps for no longer: try again */
    GW_ATTACH_ROLE,    /* the key is not one of a switch */
    GW_ATTACH_WORLD,   /* the job has another number of workers, perhaps for no longer: try again */
    GW_ATTACH_FOREIGN, /* the number is not one of a job with the key */
    GW_ATTACH_ENCRYPTION, /* one of the two encrypts packets, the other does not */
    GW_ATTACH_OVER,       /* the job of which it was a rank has ended, which it may not know */
    GW_ATTACH_REPLACED,   /* likewise, as another process has come in place of one of its ranks */
    GW_ATTACH_REASONS,
};

/* Where one datagram reaches many. */
struct gw_attach_group {
    uint64_t cookie;                       /* of the packets to it */
    uint16_t port;                         /* 0: there is no group */
    uint8_t address[GW_ATTACH_GROUP_SIZE]; /* IPv6, or IPv4 mapped into it */
};

/* A switch that does not answer whoever has dialled it. */
struct gw_attach_silence {
    uint8_t address[GW_ATTACH_PLACE_SIZE]; /* where it was dialled: IPv6, or IPv4 mapped into it */
    uint16_t port;                         /* 0: there is none */
    uint16_t ms;                           /* at least so long */
};

/* From somebody to the top of the switches that its packets pass. */
struct gw_attach_way {
    uint32_t rate_kbps; /* of its slowest link; 0: none of its links has a rate that is known */
    uint16_t rtt;       /* in GW_ATTACH_RTT_UNIT; 0: there are no switches, or it is the top */
    struct gw_attach_silence silence; /* the longest on it */
};

struct gw_attach_msg {
    uint8_t session[GW_ATTACH_NONCE_SIZE];
    uint8_t proof[GW_ATTACH_NONCE_SIZE];
    uint64_t cookie;
    uint64_t told_cookie; /* of ASK: as ACCEPT has told it; 0: it has not yet */
    uint64_t key_id;
    struct gw_attach_group group; /* of ACCEPT */
    uint32_t address;
    uint32_t job;
    uint32_t table;  /* of ASK: gw_ranks_table_sum(); 0: I have none */
    uint32_t life;   /* of ASK: who begins another has lost the sessions of the one before */
    uint32_t number; /* of ASK; of the answers: of the question that they answer */
    uint16_t mtu;
    uint16_t world;
    uint16_t rank;
    uint16_t entropies;
    uint16_t rtt;             /* of ASK: as measured, in GW_ATTACH_RTT_UNIT; 0: not yet */
    struct gw_attach_way way; /* of ASK and ACCEPT: the sender's */
    uint8_t step;
    uint8_t role;
    uint8_t flags;
    uint8_t notice; /* below GW_ATTACH_NOTICES */
    uint8_t reason; /* of REFUSE */
};

bool gw_attach_is_same_group(const struct gw_attach_group *a, const struct gw_attach_group *b);

/* Whether a datagram is of this protocol, in whatever version. */
bool gw_attach_is(const uint8_t *bytes, uint32_t length);

/* Version, step and session of a datagram of this protocol: they are where they are in every
 * version, so that two versions can tell each other. */
uint32_t gw_attach_version(const uint8_t *bytes);
uint8_t gw_attach_step_of(const uint8_t *bytes);
void gw_attach_session_of(const uint8_t *bytes, uint8_t session[GW_ATTACH_NONCE_SIZE]);

/* The cookie of a message of this version. */
uint64_t gw_attach_cookie_of(const uint8_t *bytes);

/* Reads a message. Returns 0, GW_ERR_VERSION, or GW_ERR_MALFORMED: count it and drop it. */
int gw_attach_decode(const uint8_t *bytes, uint32_t length, struct gw_attach_msg *msg);

/* Writes GW_ATTACH_SIZE bytes; the code is zero. */
void gw_attach_encode(const struct gw_attach_msg *msg, uint8_t *bytes);

#endif
