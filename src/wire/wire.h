/*
 * The bytes of a packet: layouts, encode, decode, and the gate that every packet passes first.
 *
 * A packet is one UDP datagram: a header, then the payload. A header's numbers are big-endian. What
 * IP and UDP already say is not said again: the class and ECN are the IP header's TOS byte, and
 * what must not be lost is ECN capable, which is how commodity switches tell it; the entropy is the
 * UDP source port, the length is the datagram's.
 *
 * Data (44 bytes, then the payload):
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +-------------------------------+-------+-------+---------------+
 *   0 |           magic "GW"          |version| kind  |     flags     |
 *     +-------------------------------+-------+-------+---------------+
 *   4 |                                                               |
 *     +                          job cookie                           +
 *   8 |                                                               |
 *     +---------------------------------------------------------------+
 *  12 |                        source address                         |
 *     +---------------------------------------------------------------+
 *  16 |                     destination address                       |
 *     +---------------------------------------------------------------+
 *  20 |                             flow                              |
 *     +---------------------------------------------------------------+
 *  24 |                        packet number                          |
 *     +---------------------------------------------------------------+
 *  28 |                   time of sending, low 48 bits                |
 *     +                               +-------------------------------+
 *  32 |                               |   payload of a full packet    |
 *     +-------------------------------+-------------------------------+
 *  36 |   packets in the message; last packet: its payload length     |
 *     +---------------------------------------------------------------+
 *  40 |                              tag                              |
 *     +---------------------------------------------------------------+
 *
 * A packet that is not the message's last is a full one, and the last one's number tells how many
 * there are; so the word at 36 needs only one of the two. A trimmed packet is this header alone,
 * with TRIMMED set.
 *
 * Answer (ACK and NACK; 40 bytes, or 48 with MASK; no payload): as above up to 34, then
 *
 *     +                               +-------------------------------+
 *  32 |                               |   entropy of the data packet  |
 *     +-------------------------------+-------------------------------+
 *  36 |                     cumulative packet number                  |
 *     +---------------------------------------------------------------+
 *  40 |                    mask, word 0 (with MASK)                   |
 *     +---------------------------------------------------------------+
 *  44 |                    mask, word 1 (with MASK)                   |
 *     +---------------------------------------------------------------+
 *
 * Packet number and time in an answer echo the data packet that caused it. Packets below the
 * cumulative number are settled: they arrived or, as GIVEN_UP says, some of them did not and need
 * not come any more. If a GIVEN_UP ACK's number is that of all packets, the flow has ended, and in
 * place of the mask is how many bytes of payload arrived: word 1 the upper half, word 0 the lower.
 * On a NACK at most one of GIVEN_UP, which speaks of the packet that it echoes, NOT_READY and READY
 * is set.
 *
 * Gradient and parameter (44 bytes, then the values): as above up to 28, where the flow is the job
 * and the packet number that of the fragment, then
 *
 *     +---------------------------------------------------------------+
 *  28 |                              key                              |
 *     +---------------------------------------------------------------+
 *  32 |    bitmap; parameter: lacking and index, or who is asked      |
 *     +-------------------------------+-------------------------------+
 *  36 |             epoch             |       aggregator's index      |
 *     +---------------+---------------+-------+---+---------+---------+
 *  40 |     scale     |   flags (2)   |   0   |lev| above 0 | above 1 |
 *     +---------------+---------------+-------+---+---------+---------+
 *
 * Four bytes per value follow, to the end of the datagram: little-endian fixed point or, with RAW,
 * the tensor's own type, of which a type of two bytes uses the first half. A request and a failure
 * have no values, all others at least one.
 *
 * The first flags of a gradient are the bound of its call, in 1/200; in a request with SPAN the
 * index is how many fragments behind it are asked for, too. The bitmap of a result is, from the
 * highest bit on: whether the contributors' windows had been cut an odd number of times (1 bit),
 * workers that the sum lacks (15), index of next use (16).
 *
 * With SLOT, the index is a slot of the job, the level the version of its sum (0 or 1), the bitmap
 * a worker's bit (parameter: all workers' bits).
 *
 * Job control (52 bytes, no payload): as above up to 28, where the flow is the job, then
 *
 *     +---------------------------------------------------------------+
 *  28 |                              key                              |
 *     +-------------------------------+-------------------------------+
 *  32 |             epoch             |             index             |
 *     +---------------+---------------+-------------------------------+
 *  36 |     scale     |   operation   |               0               |
 *     +---------------+---------------+-------------------------------+
 *  40 |                            word 0                             |
 *     +---------------------------------------------------------------+
 *  44 |                            word 1                             |
 *     +---------------------------------------------------------------+
 *  48 |                            word 2                             |
 *     +---------------------------------------------------------------+
 *
 * What the numbers mean depends on the operation; core/job.h says it. Of the flags, the upper five
 * bits are an option in a JOIN; all others are 0.
 *
 * Pause (34 bytes; no payload): as data up to 34, where the time is for how long the receiver is to
 * hold its data back; 0 lets it go on.
 *
 * Credit (28 bytes; no payload): as data up to 28, where the packet number is how many packets the
 * receiver has granted since the flow began.
 *
 * Notice (32 bytes; no payload): as data up to 28, where the flow is the one that the burst belongs
 * to (of gradients: the job), the packet number that of the notice, and the flags the class: 0 to 6
 * of the burst, 7 in the answer. Then
 *
 *     +---------------------------------------------------------------+
 *  28 |                              job                              |
 *     +---------------------------------------------------------------+
 *
 * Hail of a blast (48 bytes; no payload): as data up to 34, then
 *
 *     +                               +-------------------------------+
 *  32 |                               |             index             |
 *     +-------------------------------+-------------------------------+
 *  36 |                            word 0                             |
 *     +---------------------------------------------------------------+
 *  40 |                            word 1                             |
 *     +---------------+---------------+-------------------------------+
 *  44 |   operation   |     marks     |            number             |
 *     +---------------+---------------+-------------------------------+
 *
 * What the numbers mean depends on the operation; core/blast_hail.h says it. Data of a blast has
 * the flag BLAST, and none besides LAST, ON_CREDIT and STARVED; its packet number is the place of
 * its fragment in the message, and in the place of the tag is the round in which it is sent, and
 * the note of the fragment.
 *
 * What switches between must know of a burst travels outside of UDP, as a *signal* in the DSCP:
 *
 *       7   6   5   4   3   2   1   0
 *     +---+---+---------------+-------+
 *     | S | A |    number     |  ECN  |
 *     +---+---+---------------+-------+
 *
 *   0 0  no signal: the number is the class
 *   1 0  START: a burst is coming; the number is the marking threshold in units of five packets
 *   0 1  the answer to that; the same number
 *   1 1  head: the first packet of the burst; the number is the class
 *
 * START and answer are on notices alone, head on data and gradients alone; elsewhere they are not
 * ours, and the packet is best effort.
 *
 * There is one encoding of everything: bytes that decode encode to the same bytes.
 */
#ifndef GW_WIRE_WIRE_H
#define GW_WIRE_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#define GW_WIRE_MAGIC 0x4757u /* "GW" */

/* Change it with every change of a layout or of a meaning. */
#define GW_WIRE_VERSION 11u

enum {
    GW_WIRE_DATA_SIZE = 44, /* also the size of a trimmed packet */
    GW_WIRE_ANSWER_SIZE = 40,
    GW_WIRE_ANSWER_MASK_SIZE = 48,
    GW_WIRE_AGG_SIZE = 44,
    GW_WIRE_JOB_SIZE = 52,
    GW_WIRE_PAUSE_SIZE = 34,
    GW_WIRE_CREDIT_SIZE = 28,
    GW_WIRE_NOTICE_SIZE = 32,
    GW_WIRE_HAIL_SIZE = 48,
    GW_WIRE_HDR_MIN = GW_WIRE_CREDIT_SIZE,
    GW_WIRE_HDR_MAX = 52,
    GW_WIRE_PAYLOAD_MAX = 65535 - 8 - 40 - GW_WIRE_DATA_SIZE, /* of a UDP datagram over IPv6 */
    GW_WIRE_VALUE_SIZE = 4, /* bytes per value of a gradient or parameter */
    GW_WIRE_VALUES_MAX = GW_WIRE_PAYLOAD_MAX / GW_WIRE_VALUE_SIZE,
    GW_WIRE_LEVEL_MAX = 3,
    GW_WIRE_POSITION_MAX = 31, /* below a switch */
    GW_WIRE_JOB_OPS = 11,      /* operations of job control are below it */
    GW_WIRE_JOB_JOIN = 0,      /* the one of them that has an option in its flags */
    GW_WIRE_JOB_WORDS = 3,
    GW_WIRE_HAIL_OPS = 7, /* operations of hails are below it */
    GW_WIRE_HAIL_WORDS = 2,
    GW_WIRE_TIME_BITS = 48,
    GW_WIRE_BOUND_ONE = 200, /* the bound that means all */
};

/* If you add a kind: give it a layout above, its places and flags in wire_impl.h, a size and a
 * reader in wire.c, a writer in wire_encode.c, and a case in core/codec.c. */
enum gw_wire_kind {
    GW_WIRE_DATA = 0,
    GW_WIRE_ACK = 1,
    GW_WIRE_NACK = 2,
    GW_WIRE_GRAD = 3,
    GW_WIRE_PARAM = 4,
    GW_WIRE_JOB = 5,
    GW_WIRE_PAUSE = 6,
    GW_WIRE_CREDIT = 8, /* 7 is GW_ATTACH_KIND */
    GW_WIRE_NOTICE = 9,
    GW_WIRE_HAIL = 10,
    GW_WIRE_KINDS,
};

enum gw_wire_flag {
    GW_WIRE_TRIMMABLE = 1,    /* data: a switch may cut the payload */
    GW_WIRE_TRIMMED = 2,      /* data: a switch has cut the payload */
    GW_WIRE_BLAST = 4,        /* data: of a blast */
    GW_WIRE_ECHO_CE = 8,      /* answer: the data packet carried CE */
    GW_WIRE_ACK_NOW = 16,     /* data: acknowledge at once */
    GW_WIRE_LAST = 32,        /* data: last packet of the message */
    GW_WIRE_GIVEN_UP = 32,    /* answer: what was lost need not be sent again */
    GW_WIRE_MASK = 64,        /* answer: the mask follows */
    GW_WIRE_NOT_READY = 128,  /* NACK: there is no memory for the message yet */
    GW_WIRE_READY = 16,       /* NACK: now there is */
    GW_WIRE_ON_CREDIT = 8,    /* data: the sender waits for credit */
    GW_WIRE_LAST_FREE = 64,   /* data: the last packet before credit has come */
    GW_WIRE_STARVED = 128,    /* data: sent without credit */
    GW_WIRE_NOTICE_CLASS = 7, /* mask; notice: its class */
    GW_WIRE_JOB_OPTION = 248, /* mask; job control: see core/job.h */
};

/* The second flags of a gradient or parameter. */
enum gw_wire_agg_flag {
    GW_WIRE_AGG_RESEND = 1,    /* gradient: sent again, or behind one that was */
    GW_WIRE_AGG_MIXED = 1,     /* parameter: of gradients that are EVEN, and some that are ODD */
    GW_WIRE_AGG_SPAN = 1,      /* request: of several fragments */
    GW_WIRE_AGG_COLLISION = 2, /* the aggregator was taken */
    GW_WIRE_AGG_RAW = 4,       /* values are in the tensor's own type */
    GW_WIRE_AGG_ECN = 8,       /* a contributor met congestion */
    GW_WIRE_AGG_REQUEST = 16,  /* parameter: send the fragment again; with RAW: raw */
    GW_WIRE_AGG_EVEN = 16,     /* gradient: sent after an even number of cuts of the window */
    GW_WIRE_AGG_UNICAST = 32,  /* parameter: for the destination alone */
    GW_WIRE_AGG_FINAL = 32,    /* gradient: the result itself */
    GW_WIRE_AGG_FAILED = 64,   /* parameter: there is no sum */
    GW_WIRE_AGG_ODD = 64,      /* gradient: sent after an odd number */
    GW_WIRE_AGG_SLOT = 128,    /* of a pool of slots */
};

/* A header in numbers. LAST and MASK are not set here: they follow from the other fields. */
struct gw_wire_hdr {
    uint64_t cookie;  /* random, one per job */
    uint64_t sent_at; /* low 48 bits; data, hail: time of sending; answer, and some hails: echo
                         of that; pause: how long; else 0 */
    uint32_t src;     /* host addresses */
    uint32_t dst;
    uint32_t flow; /* gradient, parameter, job control: job */
    uint32_t seq;
    uint8_t kind;  /* enum gw_wire_kind */
    uint8_t flags; /* enum gw_wire_flag; notice: class; JOIN: see core/job.h; gradient: 0 */
    union {
        struct {
            uint32_t total; /* packets in the message: seq < total < 2^32 - 1 */
            uint32_t tag;
            uint16_t len; /* payload before any trimming: mss, the last packet's 1 to mss */
            uint16_t mss; /* payload of a full packet */
        } data;
        struct {
            uint32_t cum;
            uint32_t mask[2]; /* both zero: not sent */
            uint16_t echo_entropy;
        } answer;
        struct {
            uint32_t key;
            uint32_t bitmap;
            uint16_t epoch;
            uint16_t index;
            uint16_t values; /* in the payload */
            uint8_t scale;
            uint8_t agg_flags; /* enum gw_wire_agg_flag */
            uint8_t level;     /* up to GW_WIRE_LEVEL_MAX */
            uint8_t above[2];  /* up to GW_WIRE_POSITION_MAX */
            uint8_t bound;     /* gradient: up to GW_WIRE_BOUND_ONE; parameter: 0 */
        } agg;                 /* gradient, parameter */
        struct {
            uint32_t key;
            uint32_t word[GW_WIRE_JOB_WORDS];
            uint16_t epoch;
            uint16_t index;
            uint8_t scale;
            uint8_t op; /* below GW_WIRE_JOB_OPS */
        } job;
        struct {
            uint32_t job;
        } notice;
        struct {
            uint32_t word[GW_WIRE_HAIL_WORDS];
            uint16_t index;
            uint16_t number;
            uint8_t op; /* below GW_WIRE_HAIL_OPS */
            uint8_t marks;
        } hail;
    };
};

/*
 * The gate: nothing else looks at a datagram before it. `length` is the datagram's; only the first
 * GW_WIRE_HDR_MAX bytes of it are read. Returns 0 and stores the kind when magic, version, kind,
 * flags and length fit each other; GW_ERR_VERSION (not of this protocol, or of another version) or
 * GW_ERR_MALFORMED: count it and drop it.
 */
int gw_wire_validate(const uint8_t *bytes, uint32_t length, enum gw_wire_kind *kind);

/* The version of a datagram that is refused with GW_ERR_VERSION; 0 when the magic is not ours. */
uint32_t gw_wire_version(const uint8_t *bytes, uint32_t length);

/* The job of a datagram that passed the gate. */
uint64_t gw_wire_cookie(const uint8_t *bytes);

/*
 * Reads the header of a datagram that passed the gate. Returns 0, or GW_ERR_MALFORMED when fields
 * contradict each other or the length.
 */
int gw_wire_decode(const uint8_t *bytes, uint32_t length, struct gw_wire_hdr *hdr);

/*
 * Writes a header; `bytes` has room for GW_WIRE_HDR_MAX. Returns its size: that is where the
 * payload begins. The fields must be as gw_wire_decode() would accept them.
 */
uint32_t gw_wire_encode(const struct gw_wire_hdr *hdr, uint8_t *bytes);

/*
 * Packets of a train mostly differ from the one before them in their number alone, gradients and
 * parameters also in their index. `like` and `bytes` are headers of GW_WIRE_DATA_SIZE, `like` that
 * of data, a gradient or a parameter.
 *
 * Says whether they are alike but for these; and writes one like the other, with another number.
 * The functions below have what may differ.
 */
bool gw_wire_is_like(const uint8_t *bytes, const uint8_t *like);
void gw_wire_write_like(uint8_t *bytes, const uint8_t *like, uint32_t seq);
uint32_t gw_wire_seq(const uint8_t *bytes);
uint16_t gw_wire_agg_index(const uint8_t *bytes);
void gw_wire_set_agg_index(uint8_t *bytes, uint16_t index);

/* What a TOS byte says of a burst; see above. */
enum gw_wire_signal {
    GW_WIRE_SIGNAL_NONE = 0,
    GW_WIRE_SIGNAL_ANSWER = 1,
    GW_WIRE_SIGNAL_START = 2,
    GW_WIRE_SIGNAL_HEAD = 3,
};

/* The TOS byte (traffic class in IPv6) of a signal, its number (at most 15) and ECN. */
static inline uint8_t gw_wire_tos(enum gw_wire_signal signal, uint8_t number, uint8_t ecn)
{
    return (uint8_t)((uint32_t)signal << 6 | (uint32_t)number << 2 | ecn);
}

static inline enum gw_wire_signal gw_wire_tos_signal(uint8_t tos)
{
    return (enum gw_wire_signal)(tos >> 6);
}

static inline uint8_t gw_wire_tos_number(uint8_t tos)
{
    return tos >> 2 & 15;
}

/* Whether data or a gradient is the head of a burst. A network that writes class selector 6 makes
 * heads; they are harmless. */
static inline bool gw_wire_tos_is_head(uint8_t tos)
{
    return gw_wire_tos_signal(tos) == GW_WIRE_SIGNAL_HEAD && gw_wire_tos_number(tos) < 8;
}

/* Class of a packet that is no notice and no head; 0, best effort, when the network replaced our
 * DSCP by one of its own. */
static inline uint8_t gw_wire_tos_class(uint8_t tos)
{
    return tos >> 5 == 0 ? tos >> 2 : 0;
}

static inline uint8_t gw_wire_tos_ecn(uint8_t tos)
{
    return tos & 3;
}

#endif
