/*
 * Contents of messages, with `host.payload`: made from the flow's number and the offset when the
 * flow starts, and compared when the message is complete.
 *
 * A buffer's reference count is a plain number and packets cross partitions, so such a run has one
 * partition. Buffers are as many as packets can be alive, about; where they run out, senders try
 * again later.
 */
#include "sim/payload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "base/error.h"
#include "core/aggregation/agg_index.h"
#include "sim/message_terms.h"
#include "topo/memory.h"

enum {
    BUFS_MAX = 1 << 22, /* 16 GiB of address space at the usual 4 KiB */
    BUF_ALIGNMENT = 64, /* of buffers, for the kernels that add up */
    HALF_FULL = 2,      /* packets at the end of a message may be nearly empty */
    RAW_BUFS = 4096,    /* raw contributions at a server, see jobs.c */
};

/* A flow without end has no contents, nor has any message above this. */
static const uint64_t MESSAGE_MAX = (uint64_t)1 << 30;

struct message {
    unsigned char *sent;     /* while the flow runs at its sender */
    unsigned char *received; /* until the message is complete at its receiver, as is the next */
    uint64_t *arrived;       /* bit for each packet; NULL: all must arrive */
};

struct gw_sim_payload {
    struct gw_buf_pool bufs;
    void *memory; /* of the buffers */
    size_t memory_size;
    struct message *messages; /* per flow */
};

/* Bytes of the smallest packet that many may be of. */
static uint64_t least_packet(const struct gw_scenario *scenario)
{
    uint64_t least = scenario->host.mtu;
    for (uint32_t i = 0; i < scenario->workload.flow_count; i++) {
        uint64_t bytes = scenario->workload.flows[i].bytes;
        if (bytes > 0 && bytes < least)
            least = bytes;
    }
    for (uint32_t i = 0; i < scenario->workload.job_count; i++) {
        uint64_t bytes = 4 * (uint64_t)scenario->workload.jobs[i].values;
        if (bytes < least)
            least = bytes;
    }
    return scenario->host.header + least;
}

/* Packets that links and queues can hold, and buffers that training jobs hold besides. */
static uint64_t count_bufs(const struct gw_sim *sim)
{
    const struct gw_scenario *scenario = sim->scenario;
    const struct gw_topo *topo = &scenario->topo;
    const uint64_t packet = least_packet(scenario);
    /* No packet is under way for longer than the calendar has rows. */
    const gw_time flight = ((gw_time)sim->row_mask + 1) * sim->window;
    uint64_t count = 0;
    for (uint32_t i = 0; i < 2 * topo->link_count; i++) {
        const struct gw_link_side *side = &topo->links[i / 2].side[i % 2];
        uint64_t queue = side->queue_bytes ? side->queue_bytes : scenario->queue.capacity;
        uint64_t under_way = (uint64_t)((unsigned __int128)flight * side->rate_bps / (8 * GW_S));
        count += HALF_FULL * ((queue + under_way) / packet + scenario->host.train);
    }
    for (uint32_t i = 0; i < scenario->workload.job_count; i++) {
        const struct gw_job_spec *job = &scenario->workload.jobs[i];
        /* Results that a worker or a server keeps. */
        uint64_t log = (job->worth.bound ? 4 : 2) * (uint64_t)gw_agg_positions(job->window);
        count += (uint64_t)(topo->node_count - topo->host_count) * job->aggregators +
                 job->server_count * (RAW_BUFS + log + log * job->worker_count) + 2 * job->slots;
    }
    count = (count + BUF_ALIGNMENT - 1) / BUF_ALIGNMENT * BUF_ALIGNMENT;
    return count < BUFS_MAX ? count : BUFS_MAX;
}

/* Holds a packet of a message and one of a training job. */
static uint32_t buf_size(const struct gw_scenario *scenario)
{
    uint32_t size = gw_scenario_packet_max(scenario) - scenario->host.header;
    return (size + BUF_ALIGNMENT - 1) / BUF_ALIGNMENT * BUF_ALIGNMENT;
}

int gw_sim_payload_open(struct gw_sim *sim, char *why)
{
    GW_ASSERT(sim->part_count == 1);
    uint32_t count = (uint32_t)count_bufs(sim), size = buf_size(sim->scenario);
    size_t memory_size = gw_buf_pool_size(count, size);
    /* Address space only: pages are touched when buffers are first used. */
    void *memory = mmap(NULL, memory_size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        snprintf(why, GW_WHY_MAX, "cannot reserve memory for payload: %s", strerror(errno));
        return GW_ERR_NO_MEMORY;
    }
    struct gw_sim_payload *payload = gw_memory_aligned(sizeof(*payload));
    *payload = (struct gw_sim_payload){
        .memory = memory,
        .memory_size = memory_size,
        .messages =
            gw_memory_aligned(sim->scenario->workload.flow_count * sizeof(*payload->messages)),
    };
    gw_buf_pool_init(&payload->bufs, memory, count, size);
    sim->payload = payload;
    sim->parts[0].pool.bufs = &payload->bufs;
    return GW_OK;
}

void gw_sim_payload_close(struct gw_sim *sim)
{
    struct gw_sim_payload *payload = sim->payload;
    if (!payload)
        return;
    for (uint32_t i = 0; i < sim->scenario->workload.flow_count; i++) {
        free(payload->messages[i].sent);
        free(payload->messages[i].received);
        free(payload->messages[i].arrived);
    }
    munmap(payload->memory, payload->memory_size);
    free(payload->messages);
    free(payload);
    sim->payload = NULL;
}

/* The eight bytes of a flow's message at offset 8 * `word`. */
static uint64_t contents(uint32_t flow, uint64_t word)
{
    return gw_mix64((uint64_t)(flow + 1) << 32 ^ word);
}

static bool has_contents(const struct gw_flow_spec *spec)
{
    return spec->bytes > 0 && spec->bytes <= MESSAGE_MAX;
}

const void *gw_sim_payload_message(struct gw_sim *sim, uint32_t flow)
{
    const struct gw_flow_spec *spec = &sim->scenario->workload.flows[flow];
    struct message *message = &sim->payload->messages[flow];
    if (message->sent || !has_contents(spec))
        return message->sent;
    message->sent = gw_memory_aligned(spec->bytes);
    for (uint64_t at = 0; at < spec->bytes; at += sizeof(uint64_t)) {
        uint64_t word = contents(flow, at / sizeof(word));
        size_t left = spec->bytes - at < sizeof(word) ? spec->bytes - at : sizeof(word);
        memcpy(message->sent + at, &word, left);
    }
    return message->sent;
}

void gw_sim_payload_sent(struct gw_sim *sim, uint32_t flow)
{
    free(sim->payload->messages[flow].sent);
    sim->payload->messages[flow].sent = NULL;
}

static void forget(struct message *message)
{
    free(message->received);
    free(message->arrived);
    message->received = NULL;
    message->arrived = NULL;
}

static uint64_t packets_of(const struct gw_sim *sim, const struct gw_flow_spec *spec)
{
    return (spec->bytes + sim->scenario->host.mtu - 1) / sim->scenario->host.mtu;
}

void gw_sim_payload_expect(struct gw_sim *sim, uint32_t flow)
{
    const struct gw_flow_spec *spec = &sim->scenario->workload.flows[flow];
    struct message *message = &sim->payload->messages[flow];
    if (!has_contents(spec))
        return;
    forget(message);
    message->received = gw_memory_aligned(spec->bytes);
    struct gw_endpoint *receiver = sim->nodes[sim->place[spec->dst]].endpoint;
    struct gw_expect expect = {
        .peer = spec->src,
        .tag = sim->first_tag + flow,
        .data = message->received,
        .bytes = spec->bytes,
    };
    if (spec->bound) {
        uint64_t packets = packets_of(sim, spec);
        message->arrived = gw_memory_zeroed(gw_bit_words(packets), sizeof(*message->arrived));
        expect.finish = gw_sim_message_finish(sim);
        expect.arrived = message->arrived;
        expect.packets_max = (uint32_t)packets;
    }
    int error = gw_endpoint_expect_part(receiver, &expect);
    GW_ASSERT(error == GW_OK); /* there is room for every flow to this host */
}

void gw_sim_payload_expect_again(struct gw_sim *sim, const struct gw_sim_node *node)
{
    for (uint32_t i = 0; i < sim->scenario->workload.flow_count; i++)
        if (sim->scenario->workload.flows[i].dst == node->id && sim->flows[i].started &&
            sim->flows[i].outcome == GW_FLOW_PENDING)
            gw_sim_payload_expect(sim, i);
}

/* Whether a packet's place holds what was sent, or what was there before. */
static bool packet_is_right(const struct gw_sim *sim, uint32_t flow, uint64_t packet, bool has_come)
{
    const unsigned char *received = sim->payload->messages[flow].received;
    const uint64_t mtu = sim->scenario->host.mtu, first = packet * mtu;
    uint64_t bytes = sim->scenario->workload.flows[flow].bytes;
    uint64_t end = bytes - first < mtu ? bytes : first + mtu;
    for (uint64_t at = first, length; at < end; at += length) {
        uint64_t offset = at % sizeof(uint64_t);
        uint64_t word = has_come ? contents(flow, at / sizeof(word)) : 0;
        length = end - at < sizeof(word) - offset ? end - at : sizeof(word) - offset;
        if (memcmp(received + at, (const unsigned char *)&word + offset, length) != 0)
            return false;
    }
    return true;
}

bool gw_sim_payload_received(struct gw_sim *sim, uint32_t flow, uint32_t missing)
{
    const struct gw_flow_spec *spec = &sim->scenario->workload.flows[flow];
    struct message *message = &sim->payload->messages[flow];
    if (!has_contents(spec))
        return true;
    bool is_same = message->received != NULL;
    for (uint64_t i = 0; i < packets_of(sim, spec) && is_same; i++) {
        bool has_come = !message->arrived || gw_bit_is_set(message->arrived, i);
        is_same = packet_is_right(sim, flow, i, has_come);
        missing -= !has_come;
    }
    forget(message);
    return is_same && missing == 0;
}
