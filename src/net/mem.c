/*
 * Links, frames in flight and the hand-cranked clock; see mem.h.
 *
 * A link keeps its frames on two lists, punctual and late. Each list is in the order of arrival (a
 * frame never overtakes the one before it in its list, even when the latency was lowered), so the
 * next frame to arrive is one of two heads.
 *
 * A step looks at every link, most of which have nothing to do, so what it looks at lies together:
 * `due` says for each link when its next frame arrives or its ready port can transmit.
 *
 * Invariant, per link: sent + doubled = lost + overflow + delivered + malformed + no_room + in
 * flight.
 */
#include "net/mem.h"

#include <stdlib.h>
#include <string.h>

#include "core/codec.h"

#define FRAME_NONE UINT32_MAX

struct mem_frame {
    struct gw_frame frame;
    gw_time arrives_at;
    uint32_t next; /* in its list */
};

struct frame_list {
    uint32_t head; /* FRAME_NONE: empty */
    uint32_t tail;
};

struct mem_link {
    struct gw_mem_link cfg;
    gw_byte_time byte_time; /* 0: no rate */
    gw_time busy_until;
    uint32_t from, to; /* nodes */
    uint16_t from_port, to_port;
    bool is_ready; /* the port has reported and not yet said that it is empty */
    struct frame_list punctual;
    struct frame_list late;
    struct gw_mem_stats stats;
};

struct mem_node {
    struct gw_node *node; /* NULL: nobody is there */
    struct gw_pkt_pool *pool;
};

struct gw_mem {
    struct gw_mem_cfg cfg;
    struct gw_codec codec;
    gw_time now;
    uint32_t node_count;
    uint32_t link_count;
    uint32_t free_head; /* unused frames */
    struct mem_frame *frames;
    unsigned char *payloads; /* cfg.mtu bytes for each frame */
    struct mem_node nodes[GW_MEM_NODES_MAX];
    gw_time due[GW_MEM_LINKS_MAX]; /* GW_TIME_NEVER: the link has nothing to do */
    struct mem_link links[GW_MEM_LINKS_MAX];
};

struct gw_mem *gw_mem_open(const struct gw_mem_cfg *cfg)
{
    GW_ASSERT(cfg->frames_max >= 1 && cfg->frames_max < FRAME_NONE && cfg->mtu >= 1);
    GW_ASSERT(cfg->batch >= 1 && cfg->batch <= GW_MEM_BATCH_MAX);
    struct gw_mem *mem = calloc(1, sizeof(*mem));
    if (!mem)
        return NULL;
    mem->cfg = *cfg;
    mem->codec = (struct gw_codec){.cookie = cfg->cookie, .overhead = cfg->overhead};
    mem->now = cfg->start;
    mem->frames = calloc(cfg->frames_max, sizeof(*mem->frames));
    mem->payloads = calloc(cfg->frames_max, cfg->mtu);
    if (!mem->frames || !mem->payloads) {
        gw_mem_close(mem);
        return NULL;
    }
    for (uint32_t i = 0; i < cfg->frames_max; i++)
        mem->frames[i].next = i + 1 < cfg->frames_max ? i + 1 : FRAME_NONE;
    return mem;
}

void gw_mem_close(struct gw_mem *mem)
{
    free(mem->payloads);
    free(mem->frames);
    free(mem);
}

uint32_t gw_mem_add(struct gw_mem *mem, struct gw_node *node, struct gw_pkt_pool *pool)
{
    GW_ASSERT(mem->node_count < GW_MEM_NODES_MAX);
    mem->nodes[mem->node_count] = (struct mem_node){.node = node, .pool = pool};
    return mem->node_count++;
}

/* The list whose head arrives first, or NULL when nothing is on the link. */
static struct frame_list *next_list(const struct gw_mem *mem, struct mem_link *link)
{
    uint32_t punctual = link->punctual.head;
    uint32_t late = link->late.head;
    if (punctual == FRAME_NONE)
        return late == FRAME_NONE ? NULL : &link->late;
    if (late == FRAME_NONE ||
        !gw_time_before(mem->frames[late].arrives_at, mem->frames[punctual].arrives_at))
        return &link->punctual;
    return &link->late;
}

static gw_time earlier(gw_time a, gw_time b)
{
    return gw_deadline_before(a, b) ? a : b;
}

static void update_due(struct gw_mem *mem, struct mem_link *link)
{
    struct frame_list *list = next_list(mem, link);
    gw_time arrives_at = list ? mem->frames[list->head].arrives_at : GW_TIME_NEVER;
    mem->due[link - mem->links] =
        earlier(link->is_ready ? link->busy_until : GW_TIME_NEVER, arrives_at);
}

void gw_mem_replace(struct gw_mem *mem, uint32_t number, struct gw_node *node,
                    struct gw_pkt_pool *pool)
{
    mem->nodes[number] = (struct mem_node){.node = node, .pool = pool};
    for (uint32_t i = 0; i < mem->link_count; i++)
        if (mem->links[i].from == number) {
            mem->links[i].is_ready = false;
            update_due(mem, &mem->links[i]);
        }
}

static struct mem_link *link_of_port(struct gw_mem *mem, uint32_t node, uint16_t port)
{
    for (uint32_t i = 0; i < mem->link_count; i++)
        if (mem->links[i].from == node && mem->links[i].from_port == port)
            return &mem->links[i];
    return NULL;
}

uint32_t gw_mem_connect(struct gw_mem *mem, uint32_t from, uint16_t from_port, uint32_t to,
                        uint16_t to_port, const struct gw_mem_link *cfg)
{
    GW_ASSERT(mem->link_count < GW_MEM_LINKS_MAX && !link_of_port(mem, from, from_port));
    GW_ASSERT(from_port < mem->nodes[from].node->port_count);
    GW_ASSERT(to_port < mem->nodes[to].node->port_count);
    uint32_t number = mem->link_count++;
    mem->links[number] = (struct mem_link){
        .busy_until = mem->now,
        .from = from,
        .to = to,
        .from_port = from_port,
        .to_port = to_port,
        .punctual = {.head = FRAME_NONE},
        .late = {.head = FRAME_NONE},
    };
    mem->due[number] = GW_TIME_NEVER;
    gw_mem_change(mem, number, cfg);
    return number;
}

void gw_mem_change(struct gw_mem *mem, uint32_t number, const struct gw_mem_link *cfg)
{
    GW_ASSERT(number < mem->link_count && cfg->latency > 0);
    struct mem_link *link = &mem->links[number];
    link->cfg = *cfg;
    link->byte_time = cfg->rate_bps ? gw_byte_time_from_bps(cfg->rate_bps) : 0;
}

/* Takes an unused frame, or returns FRAME_NONE. */
static uint32_t frame_claim(struct gw_mem *mem)
{
    uint32_t index = mem->free_head;
    if (index != FRAME_NONE)
        mem->free_head = mem->frames[index].next;
    return index;
}

static void frame_release(struct gw_mem *mem, uint32_t index)
{
    mem->frames[index].next = mem->free_head;
    mem->free_head = index;
}

static unsigned char *frame_payload(const struct gw_mem *mem, uint32_t index)
{
    return mem->payloads + (size_t)index * mem->cfg.mtu;
}

static void list_append(struct gw_mem *mem, struct frame_list *list, uint32_t index)
{
    struct mem_frame *frame = &mem->frames[index];
    frame->next = FRAME_NONE;
    if (list->head == FRAME_NONE) {
        list->head = index;
    } else {
        struct mem_frame *tail = &mem->frames[list->tail];
        if (gw_time_before(frame->arrives_at, tail->arrives_at))
            frame->arrives_at = tail->arrives_at;
        tail->next = index;
    }
    list->tail = index;
}

/* Puts one copy of an encoded packet, which left at `left_at`, on the link. */
static void link_carry(struct gw_mem *mem, struct mem_link *link, const struct gw_frame *frame,
                       const unsigned char *payload, gw_time left_at, bool is_late)
{
    uint32_t index = frame_claim(mem);
    if (index == FRAME_NONE) {
        link->stats.overflow++;
        return;
    }
    uint32_t size = frame->length - frame->hdr_size;
    mem->frames[index].frame = *frame;
    if (payload)
        memcpy(frame_payload(mem, index), payload, size);
    else
        memset(frame_payload(mem, index), 0, size);
    gw_time arrives_at = gw_time_add(left_at, link->cfg.latency);
    mem->frames[index].arrives_at =
        is_late ? gw_time_add(arrives_at, link->cfg.delay_by) : arrives_at;
    list_append(mem, is_late ? &link->late : &link->punctual, index);
}

static void link_send(struct gw_mem *mem, struct mem_link *link, struct gw_pkt *pkt)
{
    struct gw_pkt_pool *pool = mem->nodes[link->from].pool;
    uint64_t bit = UINT64_C(1) << (link->stats.sent++ & 63);
    struct gw_frame frame;
    gw_codec_encode(&mem->codec, pkt, &frame);
    link->stats.bytes += frame.length;
    GW_ASSERT(frame.length - frame.hdr_size <= mem->cfg.mtu);
    link->busy_until += gw_serialisation(link->byte_time, frame.length + mem->cfg.overhead);
    if (link->cfg.lose & bit) {
        link->stats.lost++;
    } else {
        const unsigned char *payload =
            pkt->buf == GW_BUF_NONE ? NULL : gw_buf_bytes(pool->bufs, pkt->buf);
        bool is_late = link->cfg.delay & bit;
        link_carry(mem, link, &frame, payload, link->busy_until, is_late);
        if (link->cfg.duplicate & bit) {
            link->stats.doubled++;
            link_carry(mem, link, &frame, payload, link->busy_until, is_late);
        }
    }
    gw_pkt_release(pool, pkt);
}

/* Pulls until the port is empty or the link is busy. */
static void link_pull(struct gw_mem *mem, struct mem_link *link)
{
    struct gw_node *node = mem->nodes[link->from].node;
    while (link->is_ready && !gw_time_before(mem->now, link->busy_until)) {
        struct gw_pkt *pkts[GW_MEM_BATCH_MAX];
        uint32_t result = gw_node_output(node, link->from_port, pkts, mem->cfg.batch, mem->now);
        uint32_t count = result & ~GW_OUTPUT_MORE;
        GW_ASSERT(count <= mem->cfg.batch);
        link->is_ready = result & GW_OUTPUT_MORE;
        link->busy_until = mem->now;
        for (uint32_t i = 0; i < count; i++)
            link_send(mem, link, pkts[i]);
    }
    update_due(mem, link);
}

/* Turns a frame that arrived into a packet of the receiver, or counts why not. */
static struct gw_pkt *frame_receive(struct gw_mem *mem, struct mem_link *link, uint32_t index)
{
    struct gw_pkt_pool *pool = mem->nodes[link->to].pool;
    struct gw_frame *frame = &mem->frames[index].frame;
    struct gw_pkt *pkt = pool ? gw_pkt_claim(pool) : NULL;
    if (!pkt) {
        link->stats.no_room++;
        return NULL;
    }
    if (gw_codec_decode(&mem->codec, frame, mem->now, pkt) != 0) {
        pkt->buf = GW_BUF_NONE;
        gw_pkt_release(pool, pkt);
        link->stats.malformed++;
        return NULL;
    }
    uint32_t payload = frame->length - frame->hdr_size;
    if (payload && pool->bufs) {
        pkt->buf = payload <= pool->bufs->size ? gw_buf_claim(pool->bufs) : GW_BUF_NONE;
        if (pkt->buf == GW_BUF_NONE) {
            gw_pkt_release(pool, pkt);
            link->stats.no_room++;
            return NULL;
        }
        memcpy(gw_buf_bytes(pool->bufs, pkt->buf), frame_payload(mem, index), payload);
    }
    link->stats.delivered++;
    return pkt;
}

/* Delivers what has arrived by now. */
static void link_deliver(struct gw_mem *mem, struct mem_link *link)
{
    struct gw_pkt *pkts[GW_MEM_BATCH_MAX];
    uint32_t count = 0;
    struct frame_list *list;
    while ((list = next_list(mem, link)) != NULL &&
           !gw_time_before(mem->now, mem->frames[list->head].arrives_at)) {
        uint32_t index = list->head;
        list->head = mem->frames[index].next;
        pkts[count] = frame_receive(mem, link, index);
        count += pkts[count] != NULL;
        frame_release(mem, index);
        if (count == mem->cfg.batch) {
            gw_node_input(mem->nodes[link->to].node, link->to_port, pkts, count, mem->now);
            count = 0;
        }
    }
    if (count)
        gw_node_input(mem->nodes[link->to].node, link->to_port, pkts, count, mem->now);
    update_due(mem, link);
}

static void collect_ready(struct gw_mem *mem)
{
    for (uint32_t i = 0; i < mem->node_count; i++) {
        struct gw_node *node = mem->nodes[i].node;
        for (uint16_t j = 0; node && j < node->ready_count; j++) {
            struct mem_link *link = link_of_port(mem, i, node->ready[j]);
            GW_ASSERT(link != NULL);
            link->is_ready = true;
            update_due(mem, link);
        }
        if (node)
            node->ready_count = 0;
    }
}

/* Never before now; GW_TIME_NEVER when nothing will happen. */
static gw_time next_instant(struct gw_mem *mem)
{
    gw_time next = GW_TIME_NEVER;
    for (uint32_t i = 0; i < mem->node_count; i++)
        if (mem->nodes[i].node)
            next = earlier(gw_node_deadline(mem->nodes[i].node), next);
    for (uint32_t i = 0; i < mem->link_count; i++)
        next = earlier(mem->due[i], next);
    return gw_deadline_before(next, mem->now) ? mem->now : next;
}

static bool is_due(const struct gw_mem *mem, uint32_t link)
{
    return !gw_deadline_before(mem->now, mem->due[link]);
}

bool gw_mem_step(struct gw_mem *mem, gw_time until)
{
    collect_ready(mem);
    gw_time next = next_instant(mem);
    if (next == GW_TIME_NEVER || gw_deadline_before(until, next)) {
        if (until != GW_TIME_NEVER)
            mem->now = until;
        return false;
    }
    mem->now = next;
    for (uint32_t i = 0; i < mem->link_count; i++)
        if (is_due(mem, i))
            link_pull(mem, &mem->links[i]);
    for (uint32_t i = 0; i < mem->link_count; i++)
        if (is_due(mem, i))
            link_deliver(mem, &mem->links[i]);
    for (uint32_t i = 0; i < mem->node_count; i++) {
        struct gw_node *node = mem->nodes[i].node;
        gw_time deadline = node ? gw_node_deadline(node) : GW_TIME_NEVER;
        if (deadline != GW_TIME_NEVER && !gw_time_before(mem->now, deadline))
            gw_node_expire(node, mem->now);
    }
    return true;
}

gw_time gw_mem_now(const struct gw_mem *mem)
{
    return mem->now;
}

const struct gw_mem_stats *gw_mem_stats(const struct gw_mem *mem, uint32_t link)
{
    GW_ASSERT(link < mem->link_count);
    return &mem->links[link].stats;
}
