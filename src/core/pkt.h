/*
 * Packets in decoded form, and the pool that they live in.
 *
 * A gw_pkt is one cache line. It is passed by pointer and owned by one holder at a time: the caller
 * of `input` gives it away, the caller of `output` receives it. Its payload, if any, is a counted
 * buffer: a multicast copies the packet and adds a reference; a shared payload is immutable. A pool
 * without buffers (a simulation that carries no payload) leaves `buf` at GW_BUF_NONE.
 *
 * Packets and buffers are named by 32-bit index, so that queues and event keys stay small.
 * A pool is a view of memory that several views may share: each has its own free list, and a packet
 * may be released into another view than the one it was claimed from.
 */
#ifndef GW_CORE_PKT_H
#define GW_CORE_PKT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/time.h"

#define GW_PKT_NONE UINT32_MAX
#define GW_BUF_NONE UINT32_MAX

/*
 * From here on to GW_BUF_NONE: no buffer, but memory of somebody else where the payload lies, lent
 * for as long as it takes to hand over the train that a node has just put out. Who keeps such a
 * packet longer, or looks at its payload as a buffer, settles it first.
 */
#define GW_BUF_LENT     (GW_BUF_NONE - GW_BUF_LENT_MAX)
#define GW_BUF_LENT_MAX 64u

/*
 * If you add a kind: number and layout in wire/wire.h, and what is listed there; fields in
 * core/codec.c; and a case in the input of who takes it: the endpoint (host/endpoint.c), or the
 * switch and the host's cost in the simulator (sim/host_cost.c) if it ends at a link.
 */
enum gw_pkt_kind {
    GW_PKT_DATA = 0,  /* one fragment of a flow's message */
    GW_PKT_ACK = 1,   /* data arrived, or enough of it has */
    GW_PKT_NACK = 2,  /* data arrived trimmed, or too early (NOT_READY, later READY) */
    GW_PKT_GRAD = 3,  /* one fragment of a worker's tensor, or of a sum, on its way to the server */
    GW_PKT_PARAM = 4, /* one fragment of the result, on its way to the workers */
    GW_PKT_JOB = 5,   /* job control; see core/job.h */
    GW_PKT_PAUSE = 6, /* the other end of the link holds data back for a time; see pause.h */
    /* 7 is none of these on the wire, but wire/attach.h. */
    GW_PKT_CREDIT = 8, /* the receiver of a flow lets its sender go on; see credit.h */
    GW_PKT_NOTICE = 9, /* a burst is coming, or the answer to that; see core/notice.h */
    GW_PKT_HAIL = 10,  /* what the two ends of a blast tell each other; see blast_hail.h */
    GW_PKT_KINDS,
};

/* Codepoints of RFC 3168. */
enum gw_ecn {
    GW_ECN_NOT_ECT = 0,
    GW_ECN_ECT1 = 1,
    GW_ECN_ECT0 = 2,
    GW_ECN_CE = 3,
};

enum gw_pkt_flag {
    GW_PKT_TRIMMABLE = 1, /* a switch may cut the payload */
    GW_PKT_TRIMMED = 2,   /* a switch has cut the payload */
    GW_PKT_HEAD = 4,      /* on data and gradients: the first of a burst that a notice announced */
    GW_PKT_ECHO_CE = 8,   /* on ACK and NACK: the data packet carried CE */
    GW_PKT_ACK_NOW = 16,  /* on data: acknowledge at once, do not coalesce */
    GW_PKT_GIVEN_UP = 32, /* on ACK and NACK: what was lost need not be sent again, see flow_rx.h */
    GW_PKT_NOT_READY = 128, /* on NACK: dropped, since there is no memory for the message yet */
    GW_PKT_READY = 16,      /* on NACK: now there is */
    GW_PKT_BLAST = 32,      /* on data: not acknowledged, see blast_hail.h */
    /* On data of a flow whose sender waits for credit, see credit.h. */
    GW_PKT_ON_CREDIT = 8,  /* it is such a flow */
    GW_PKT_LAST_FREE = 64, /* no packet of a higher number leaves before credit has come */
    GW_PKT_STARVED = 128,  /* without credit: the sender has none, and has waited for long */
};

/* What a gradient or parameter packet says of itself (ATP, section 3.3). */
enum gw_agg_flag {
    GW_AGG_RESEND = 1, /* gradient: sent again, or behind one that was; takes partial sums along,
                          is never held */
    GW_AGG_COLLISION =
        2,          /* the fragment's aggregator was taken; parameter: `bitmap` is a new index */
    GW_AGG_RAW = 4, /* the payload is in the tensor's own type, not fixed point: do not add */
    GW_AGG_ECN = 8, /* a contributor met congestion */
    GW_AGG_REQUEST = 16, /* parameter: no result; with RAW, send this fragment again raw; without,
                            it was in a collision, and positions in `bitmap` are to send it again */
    /* Gradient: contributors had cut their windows an even number of times when they first sent
     * the fragment, or an odd number. Parameter: some of them this, some that; see agg_window.h. */
    GW_AGG_EVEN = 16,
    GW_AGG_ODD = 64,
    GW_AGG_MIXED = 1,
    GW_AGG_SPAN = 1,     /* request, not RAW: of `index` more fragments behind it, too */
    GW_AGG_UNICAST = 32, /* parameter: for `dst` alone */
    GW_AGG_FINAL = 32,   /* gradient: the result itself, from a worker that has it: nothing to add.
                            With COLLISION: `index` is how many workers it lacks */
    GW_AGG_FAILED = 64,  /* parameter: the sum does not fit the tensor's type */
    /* Of a pool of slots (core/switch/slots.h): `index` is the slot of the job, agg.level the
     * version, agg.bitmap the worker's bit; nothing else of agg_flags and agg.above is used. */
    GW_AGG_SLOT = 128,
};

/* Of jobs that are added up in slots. */
enum {
    GW_SLOTS_MAX = 65536,    /* of one job: what a packet's index can name */
    GW_SLOTS_WORLD_MAX = 32, /* workers of a job: bits of a bitmap */
};

enum {
    GW_PKT_SCALE_NONE = 255, /* in `scale`: no exponent, above all others */
};

/* 0 is best effort and served last, 1 to 6 carry data with higher served first. */
enum {
    GW_CLASS_BEST_EFFORT = 0,
    GW_CLASS_DATA_MAX = 6,
    GW_CLASS_CONTROL = 7,
    GW_CLASSES = 8,
};

/* All that a queue discipline may see of a packet, and the link by which it queues it. */
struct gw_qpkt {
    uint32_t next;      /* index of the next packet in the same queue */
    uint32_t size;      /* bytes on the wire, headers included */
    uint32_t rank;      /* lower is more urgent (pFabric: remaining bytes); 0 when unused */
    uint32_t key;       /* flow key: same for all packets of one flow in one direction */
    uint8_t flags;      /* enum gw_pkt_flag */
    uint32_t class : 3; /* GW_CLASS_* */
    uint32_t ecn : 2;   /* enum gw_ecn */
    /* Here to fill the hole, not for disciplines. */
    uint32_t kind : 4; /* enum gw_pkt_kind */
    uint32_t in : 15;  /* for its holder: the port by which it came; 0 on links */
};

struct gw_pkt {
    struct gw_qpkt q;
    uint32_t src; /* host addresses */
    uint32_t dst;
    uint32_t flow; /* chosen by the sender of the data; the same on its ACKs. All of a job's: job */
    union {
        gw_time sent_at;       /* data: when its first bit left; ACK, NACK: echo of that; hail:
                                  one of these, see core/blast_hail.h */
        gw_time pause;         /* pause: how long to hold data back; 0: no longer */
        struct {               /* gradient, parameter; job control: as core/job.h says */
            uint32_t key;      /* tensor and iteration; the server checks that workers agree */
            uint16_t epoch;    /* of the job: packets of another one are stale */
            uint8_t scale;     /* exponent for the fragment one window later, see scaling.h */
            uint8_t agg_flags; /* enum gw_agg_flag */
        };
    };
    uint32_t seq; /* packet number within the flow; ACK, NACK: echo of the packet that caused it;
                     credit: packets granted since the flow began; notice: its number, echoed in
                     the answer; data of a blast: place of its fragment; hail: see there */
    uint16_t entropy; /* what ECMP hashes */
    union {
        uint16_t echo_entropy; /* ACK, NACK: entropy of the data packet */
        uint16_t index;        /* gradient, parameter: which aggregator; job control, hail: see
                                  there */
    };
    uint32_t buf; /* payload, or GW_BUF_NONE */
    union {
        struct {
            uint32_t total; /* packets in the message */
            uint16_t len;   /* payload bytes of this packet; stays when the payload is trimmed */
            uint16_t mss;   /* payload bytes of every packet but the last */
            uint32_t tag;   /* names the message to the application; of a blast: see blast_hail.h */
        } data;
        struct {
            uint32_t cum; /* every packet below this one has arrived, or is not wanted any more */
            /* ACK with GIVEN_UP and the number of packets in `cum`: payload bytes that arrived, low
             * word first; the flow has ended. Coalesced ACK otherwise: bit i % 32 of word i / 32
             * says that packet seq - 32 + i has arrived; all zero when the ACK speaks of packet
             * `seq` alone. */
            uint32_t mask[2];
        } ack;
        struct {
            /* Gradient: contributors, as positions below one switch of `level`. Parameter: who is
             * asked; of a result: the index of next use, and who is lacking (agg_bound.h). */
            uint32_t bitmap;
            uint16_t values;  /* in the payload, four bytes each */
            uint8_t level;    /* switches of lower levels have added up all their workers */
            uint8_t above[2]; /* position of that switch below the next one, and so on */
            uint8_t bound;    /* gradient: part of a call that may lack a worker, see agg_bound.h */
            bool is_unmarked; /* gradient, in this process: no value is a mark (quant/kernels.h) */
            uint8_t zero;     /* so that packets can be compared */
        } agg;
        struct {
            uint32_t word[3]; /* job control: depends on the operation, which is in `agg_flags` */
        } job;
        struct {
            uint32_t word[2]; /* hail: depends on the operation */
            uint8_t op;       /* enum gw_hail_op */
            uint8_t marks;
            uint16_t number;
        } hail;
        struct {
            uint32_t job;   /* whose burst it is */
            uint8_t units;  /* threshold, in units of GW_NOTICE_STEP packets; 0: it is not known */
            bool is_answer; /* from where the burst goes to */
        } notice;
    };
};

_Static_assert(sizeof(struct gw_qpkt) == 20, "the small fields share a word");
_Static_assert(sizeof(struct gw_pkt) == 64, "a packet is one cache line");

enum {
    GW_ACK_MASK_BEFORE = 32, /* packets before `seq` that ack.mask reaches */
    GW_ACK_MASK_BITS = 64,
};

/*
 * Payload buffers: `count` of `size` bytes each, with a reference count per buffer.
 *
 * They are claimed by ascending address out of blocks, and from blocks that are all free before
 * others: what is claimed one after the other, the packets of a train, lies side by side in memory,
 * and what was released last, with its block, is used first.
 */
struct gw_buf_pool {
    void *memory;                /* as given to gw_buf_pool_init() */
    unsigned char *bytes;        /* of buffer 0 */
    uint32_t *refs;              /* 0: free */
    struct gw_buf_block *blocks; /* and two lists of those that are free, wholly or partly */
    uint32_t size;
    uint32_t stride; /* from buffer to buffer: `size`, and what is left for a header */
    uint32_t count;
    uint32_t current; /* the block that buffers are taken from; on no list */
    uint32_t lends;   /* loans so far: the last GW_BUF_LENT_MAX of them count */
    const void *lent[GW_BUF_LENT_MAX];
};

struct gw_pkt_pool {
    struct gw_pkt *pkts;      /* index 0 of the memory that all views share */
    struct gw_buf_pool *bufs; /* NULL: packets carry no payload */
    uint32_t free_head;       /* chain through q.next */
    uint32_t free_count;      /* packets on that chain */
    uint32_t fresh;           /* never used: [fresh, end) */
    uint32_t end;
};

/* Makes a view that owns packets [first, first + count) of `pkts`; `bufs` may be NULL. */
void gw_pkt_pool_init(struct gw_pkt_pool *pool, struct gw_pkt *pkts, uint32_t first, uint32_t count,
                      struct gw_buf_pool *bufs);

/* Bytes of memory, aligned to 8, for a pool of `count` buffers of `size` bytes. */
size_t gw_buf_pool_size(uint32_t count, uint32_t size);
void gw_buf_pool_init(struct gw_buf_pool *bufs, void *memory, uint32_t count, uint32_t size);

/* Sets the first `front` bytes of every buffer apart, for a header right before the payload. To be
 * called before the first claim; `size` is less by them then. */
void gw_buf_pool_set_front(struct gw_buf_pool *bufs, uint32_t front);

/* A buffer with one reference, or GW_BUF_NONE when none is free. */
uint32_t gw_buf_claim(struct gw_buf_pool *bufs);
/* Adds a reference. */
void gw_buf_share(struct gw_buf_pool *bufs, uint32_t buf);
/* Drops a reference; the last one frees the buffer. */
void gw_buf_release(struct gw_buf_pool *bufs, uint32_t buf);

/*
 * Makes the caller's reference one to a buffer that nobody else refers to: that which it is to, or
 * a copy of its first `size` bytes. False when no buffer is free; nothing has changed then.
 */
bool gw_buf_own(struct gw_buf_pool *bufs, uint32_t *buf, size_t size);

/* Names memory as the payload of a packet that is about to leave; GW_BUF_LENT_MAX loans later the
 * name means something else. */
static inline uint32_t gw_buf_lend(struct gw_buf_pool *bufs, const void *bytes)
{
    uint32_t slot = bufs->lends++ % GW_BUF_LENT_MAX;
    bufs->lent[slot] = bytes;
    return GW_BUF_LENT + slot;
}

static inline bool gw_buf_is_lent(uint32_t buf)
{
    return buf >= GW_BUF_LENT && buf != GW_BUF_NONE;
}

static inline unsigned char *gw_buf_bytes(const struct gw_buf_pool *bufs, uint32_t buf)
{
    return bufs->bytes + (size_t)buf * bufs->stride;
}

/* Where a payload lies, in a buffer or lent; it is only to be read. */
static inline const unsigned char *gw_buf_payload(const struct gw_buf_pool *bufs, uint32_t buf)
{
    return gw_buf_is_lent(buf) ? bufs->lent[buf - GW_BUF_LENT] : gw_buf_bytes(bufs, buf);
}

static inline struct gw_pkt *gw_pkt_at(const struct gw_pkt_pool *pool, uint32_t index)
{
    return &pool->pkts[index];
}

static inline uint32_t gw_pkt_index(const struct gw_pkt_pool *pool, const struct gw_pkt *pkt)
{
    return (uint32_t)(pkt - pool->pkts);
}

/* A packet with undefined contents and no payload, or NULL when the pool is empty. */
static inline struct gw_pkt *gw_pkt_claim(struct gw_pkt_pool *pool)
{
    struct gw_pkt *pkt;
    if (pool->free_head != GW_PKT_NONE) {
        pkt = &pool->pkts[pool->free_head];
        pool->free_head = pkt->q.next;
        pool->free_count--;
        if (pool->free_head != GW_PKT_NONE)
            __builtin_prefetch(&pool->pkts[pool->free_head], 1); /* the one to be claimed next */
    } else if (pool->fresh != pool->end) {
        pkt = &pool->pkts[pool->fresh++];
    } else {
        return NULL;
    }
    pkt->buf = GW_BUF_NONE;
    return pkt;
}

/* Gives up the packet's payload, keeps the packet. */
static inline void gw_pkt_drop_payload(struct gw_pkt_pool *pool, struct gw_pkt *pkt)
{
    if (pkt->buf < GW_BUF_LENT)
        gw_buf_release(pool->bufs, pkt->buf);
    pkt->buf = GW_BUF_NONE;
}

/* Frees the packet and gives up its payload. */
static inline void gw_pkt_release(struct gw_pkt_pool *pool, struct gw_pkt *pkt)
{
    gw_pkt_drop_payload(pool, pkt);
    pkt->q.next = pool->free_head;
    pool->free_head = gw_pkt_index(pool, pkt);
    pool->free_count++;
}

/*
 * Copies payloads that are lent into buffers of their own, so that the packets, all of data, may be
 * kept. Returns how many are left in front of `pkts`: those for which no buffer is free are
 * released, and counted in *lost.
 */
uint32_t gw_pkt_settle(struct gw_pkt_pool *pool, struct gw_pkt **pkts, uint32_t count,
                       uint64_t *lost);

/* A first-in first-out queue of packets, linked through q.next. */
struct gw_pkt_fifo {
    uint32_t head; /* undefined when count is 0 */
    uint32_t tail;
    uint32_t count;
    uint32_t bytes; /* sum of q.size */
};

/* Whether a queue is empty changes with nearly every packet and cannot be guessed, so neither this
 * nor the next branches on it. The last packet's link leads to itself. */
static inline void gw_pkt_fifo_push(struct gw_pkt_fifo *fifo, const struct gw_pkt_pool *pool,
                                    struct gw_pkt *pkt)
{
    uint32_t index = gw_pkt_index(pool, pkt);
    uint32_t keeps = 0 - (uint32_t)(fifo->count != 0); /* all ones: not empty */
    pkt->q.next = index;
    pool->pkts[index ^ ((index ^ fifo->tail) & keeps)].q.next = index;
    fifo->head = index ^ ((index ^ fifo->head) & keeps);
    fifo->tail = index;
    fifo->count++;
    fifo->bytes += pkt->q.size;
}

/* The queue must not be empty. */
static inline struct gw_pkt *gw_pkt_fifo_pop(struct gw_pkt_fifo *fifo,
                                             const struct gw_pkt_pool *pool)
{
    struct gw_pkt *pkt = &pool->pkts[fifo->head];
    fifo->head = pkt->q.next;
    /* It was queued long ago: fetch it while the link is busy with this one. */
    __builtin_prefetch(&pool->pkts[fifo->head], 1);
    fifo->count--;
    fifo->bytes -= pkt->q.size;
    return pkt;
}

/* The mask of an ACK as one number, or what stands in its place. */
static inline uint64_t gw_pkt_mask(const struct gw_pkt *pkt)
{
    return (uint64_t)pkt->ack.mask[1] << 32 | pkt->ack.mask[0];
}

/* Whether two packets say the same: all that they have but queue, size, rank and key, number,
 * place, entropy and payload. It lies side by side, without a byte that nobody sets. */
static inline bool gw_pkt_is_alike(const struct gw_pkt *a, const struct gw_pkt *b)
{
    enum {
        SAYS = offsetof(struct gw_pkt, seq) - offsetof(struct gw_pkt, q.flags),
    };
    return memcmp(&a->q.flags, &b->q.flags, SAYS) == 0 &&
           memcmp(&a->agg, &b->agg, sizeof(a->agg)) == 0;
}

/* Whether the mark of a gradient (GW_AGG_ECN) may tell of a loss: jobs whose workers tell each
 * other say their parities, too, and this packet was not marked on its last link. */
static inline bool gw_pkt_may_tell_loss(const struct gw_pkt *pkt)
{
    bool tells = pkt->agg_flags & (GW_AGG_EVEN | GW_AGG_ODD);
    return pkt->agg_flags & GW_AGG_ECN && tells && pkt->q.ecn != GW_ECN_CE;
}

/* Whether packet number `a` comes before `b`. Numbers wrap: the two are less than 2^31 apart. */
static inline bool gw_seq_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

/*
 * The key that every packet of a flow in one direction carries (a stand-in for the 5-tuple).
 * `flow` is unique per sender, so (src, flow) names the flow.
 */
uint32_t gw_flow_key(uint32_t src, uint32_t dst, uint32_t flow);

#endif
