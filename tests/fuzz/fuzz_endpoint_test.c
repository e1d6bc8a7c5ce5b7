/*
 * Fuzz target: an endpoint with flows under way, fed with any packets at any time.
 *
 * The input is a program of small steps: a datagram through the codec, a packet that is almost
 * right, time passing, packets leaving, a message being sent. Properties: no crash, no packet or
 * buffer is lost or freed twice, output and expire come to an end, memory posted for a message is
 * not overrun (the sanitizer sees it), and each flow ends at most once.
 */
#include "fuzz/node_time.h"
#include "fuzz/replay.h"
#include "host.h"
#include "percent_policy.h"
#include "support.h"

#include "base/assert.h"
#include "core/blast_hail.h"
#include "core/codec.h"

enum {
    OURS = 1,
    THEIRS = 2,
    MTU = 64,
    PKTS = 512,
    SENDS_MAX = 16,
    BATCH = 8,
    OUTPUTS_MAX = 4096, /* packets that a bounded window may emit at one instant */
    MESSAGE_BYTES = 5 * MTU + 7,
    MESSAGE_PACKETS = 6,
    PACKETS_MAX = 64, /* that can be marked */
    POSTS_FROM = 248, /* steps that post memory */
};

#define COOKIE UINT64_C(0x0123456789abcdef)

/* How far the runs got; a target that reaches nothing tests nothing. */
static uint64_t total_received, total_sent, total_malformed, total_acked, total_credit,
    total_partial, total_notices, total_answers, total_unanswered, total_hails, total_requests,
    total_reports, total_blasts, total_kept;

struct fuzz {
    struct gw_test_host host;
    struct gw_node *node;
    struct gw_endpoint_cfg cfg;
    const struct gw_transport *transport;
    unsigned char *posted[3]; /* memory for the messages of tags 0 and 1, and later of 2 */
    uint64_t *arrived;        /* marks for tag 1, of which half is enough */
    uint16_t *notes;          /* and notes */
    gw_time now;
    uint32_t sends;
    uint32_t ended;
    struct gw_test_steps steps;
};

static uint8_t take8(struct fuzz *f)
{
    return gw_test_step(&f->steps);
}

/* Small, or close to where 32 bits wrap. */
static uint32_t take_number(struct fuzz *f)
{
    uint8_t byte = take8(f);
    return byte < 192 ? byte : (uint32_t)(int8_t)byte;
}

static void start_message(struct fuzz *f)
{
    static const unsigned char message[MESSAGE_BYTES] = {1, 2, 3};
    uint32_t flow;
    uint8_t bytes = take8(f), choice = take8(f);
    struct gw_send send = {
        .peer = THEIRS,
        .bytes = bytes % (MESSAGE_BYTES + 1),
        .data = message,
        .class = choice % (GW_CLASS_DATA_MAX + 1),
        .bound = GW_Q16_ONE,
        .transport = f->transport,
        .path = gw_test_path(&f->cfg, 10000000000, 10 * GW_US),
        .notice = {.job = choice >> 5 & 1, .units = choice >> 6},
    };
    if (f->sends < SENDS_MAX && gw_endpoint_send(f->host.endpoint, &send, &flow, f->now) == 0)
        f->sends++;
}

static void feed(struct fuzz *f, struct gw_pkt *pkt, uint32_t payload)
{
    if (payload && payload <= MTU) {
        pkt->buf = gw_buf_claim(&f->host.bufs);
        GW_ASSERT(pkt->buf != GW_BUF_NONE);
        memset(gw_buf_bytes(&f->host.bufs, pkt->buf), 0xaa, MTU);
    }
    gw_node_input(f->node, 0, &pkt, 1, f->now);
}

static void input_datagram(struct fuzz *f)
{
    static const struct gw_codec codec = {.cookie = COOKIE};
    struct gw_frame frame = {.tos = take8(f), .entropy = take8(f)};
    struct gw_pkt *pkt = gw_pkt_claim(&f->host.pool);
    GW_ASSERT(pkt != NULL);
    frame.length = take8(f);
    uint32_t hdr_size = frame.length < GW_WIRE_HDR_MAX ? frame.length : GW_WIRE_HDR_MAX;
    for (uint32_t i = 0; i < hdr_size; i++)
        frame.hdr[i] = take8(f);
    if (gw_codec_decode(&codec, &frame, f->now, pkt) == 0) {
        feed(f, pkt, gw_codec_payload(pkt));
    } else {
        pkt->buf = GW_BUF_NONE;
        gw_pkt_release(&f->host.pool, pkt);
    }
}

/* A decoded packet whose every field is plausible for itself. */
static void input_packet(struct fuzz *f)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->host.pool);
    static const uint8_t kinds[] = {GW_PKT_DATA, GW_PKT_ACK, GW_PKT_NACK, GW_PKT_CREDIT};
    GW_ASSERT(pkt != NULL);
    uint8_t shape = take8(f);
    pkt->q = (struct gw_qpkt){
        .size = 100,
        .kind = kinds[shape & 3],
        .ecn = shape >> 2 & 3,
        .class = shape >> 4 & 7,
        .flags = take8(f),
    };
    pkt->src = shape >> 7 ? take8(f) : THEIRS;
    pkt->dst = shape >> 7 ? take8(f) & 3 : OURS;
    pkt->flow = take_number(f) & 7;
    if (shape >> 7)
        pkt->flow |= take_number(f) << 16;
    pkt->seq = take_number(f);
    pkt->sent_at = f->now - take_number(f) * GW_US;
    pkt->entropy = take8(f);
    pkt->echo_entropy = take8(f);
    if (pkt->q.kind == GW_PKT_DATA) {
        static const uint16_t sizes[] = {MTU, 1, 7, 0, 13, MTU + 1, UINT16_MAX, MTU};
        uint8_t choice = take8(f);
        pkt->data.total = take_number(f);
        pkt->data.mss = sizes[choice & 7];
        pkt->data.len = sizes[choice >> 3 & 7];
        pkt->data.tag = choice >> 6;
        feed(f, pkt, gw_codec_payload(pkt));
    } else {
        pkt->ack.cum = take_number(f);
        pkt->ack.mask[0] = take_number(f) * 0x01010101;
        pkt->ack.mask[1] = take_number(f) * 0x80010101;
        feed(f, pkt, 0);
    }
}

/* A packet of a blast: data, or a hail. Numbers of ours are behind those of plain flows. */
static void input_blast(struct fuzz *f)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->host.pool);
    GW_ASSERT(pkt != NULL);
    uint8_t shape = take8(f), ahead = take8(f);
    bool is_ours = shape & 8;
    *pkt = (struct gw_pkt){
        .q = {.size = 100, .kind = shape & 4 ? GW_PKT_DATA : GW_PKT_HAIL, .ecn = shape >> 4 & 3},
        .src = shape >> 7 ? take8(f) & 3 : THEIRS,
        .dst = OURS,
        .flow = is_ours ? f->cfg.tx_flows_max + (shape & 3) : shape & 3,
        .seq = take_number(f),
        .sent_at = f->now - ahead * GW_US,
        .entropy = ahead,
        .buf = GW_BUF_NONE,
    };
    if (shape >> 6 & 1)
        pkt->flow |= take_number(f) << 16;
    if (pkt->q.kind == GW_PKT_DATA) {
        uint8_t choice = take8(f);
        bool is_last = choice & 1;
        pkt->q.flags = GW_PKT_BLAST | (choice & 2 ? take8(f) : 0);
        pkt->data.total = choice & 4 ? take_number(f) : MESSAGE_PACKETS;
        pkt->data.mss = choice & 8 ? take8(f) : MTU;
        pkt->data.len = is_last ? MESSAGE_BYTES % MTU : pkt->data.mss;
        pkt->data.tag = choice & 16 ? take_number(f) << 16 : 7;
        feed(f, pkt, choice & 32 ? 0 : gw_codec_payload(pkt));
        return;
    }
    pkt->hail.op = take8(f) % (GW_HAIL_OPS + 1);
    pkt->hail.marks = take8(f);
    pkt->hail.number = (uint16_t)take_number(f);
    pkt->index = (uint16_t)take_number(f);
    pkt->hail.word[0] = take_number(f);
    pkt->hail.word[1] = take_number(f);
    if (pkt->hail.op == GW_HAIL_RENDEZVOUS && !(pkt->hail.marks & 0x80)) {
        pkt->hail.marks &= GW_HAIL_BARE | GW_HAIL_ON_CREDIT;
        pkt->hail.number = MTU;
        pkt->index = MESSAGE_BYTES % MTU;
        pkt->hail.word[0] = MESSAGE_PACKETS;
        pkt->hail.word[1] &= 1;
        pkt->seq = (uint32_t)take8(f) << 16 | take8(f) << 8;
    }
    feed(f, pkt, 0);
}

/* A notice, or the answer to one. */
static void input_notice(struct fuzz *f)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->host.pool);
    GW_ASSERT(pkt != NULL);
    uint8_t shape = take8(f);
    *pkt = (struct gw_pkt){
        .q = {.size = 100, .kind = GW_PKT_NOTICE, .class = shape >> 5},
        .src = shape & 1 ? take8(f) & 3 : THEIRS,
        .dst = shape & 2 ? take8(f) & 3 : OURS,
        .flow = take_number(f) & 3,
        .seq = take_number(f) & 3,
        .notice = {.job = shape >> 2 & 1, .units = take8(f), .is_answer = shape >> 3 & 1},
    };
    if (shape >> 4 & 1)
        pkt->flow |= take_number(f) << 16;
    pkt->buf = GW_BUF_NONE;
    feed(f, pkt, 0);
}

static void pass_time(struct fuzz *f)
{
    uint8_t step = take8(f);
    gw_test_pass_time(f->node, &f->now, step, (gw_time)step * step * GW_US);
}

/* Memory for a message that may have come before. */
static void post(struct fuzz *f)
{
    if (!gw_endpoint_expects(f->host.endpoint, THEIRS, 2))
        gw_endpoint_expect(f->host.endpoint, THEIRS, 2, f->posted[2], MESSAGE_BYTES);
}

/* Lets at most `max` packets leave; true when nothing more wants to. */
static bool output(struct fuzz *f, uint32_t max)
{
    struct gw_pkt *pkts[BATCH];
    uint32_t result;
    f->node->ready_count = 0;
    do {
        uint32_t room = max < BATCH ? max : BATCH;
        result = gw_node_output(f->node, 0, pkts, room, f->now);
        uint32_t count = result & ~GW_OUTPUT_MORE;
        GW_ASSERT(count <= room);
        max -= count;
        for (uint32_t i = 0; i < count; i++)
            gw_pkt_release(&f->host.pool, pkts[i]);
    } while (max && result & GW_OUTPUT_MORE);
    return !(result & GW_OUTPUT_MORE);
}

static void poll_events(struct fuzz *f)
{
    struct gw_event event;
    while (gw_endpoint_poll(f->host.endpoint, &event, 1)) {
        f->ended += event.peer == THEIRS && event.kind == GW_EVENT_SENT;
        total_partial += event.kind == GW_EVENT_RECEIVED && event.missing;
        total_blasts += event.kind == GW_EVENT_SENT && event.bytes &&
                        (event.flow & UINT16_MAX) >= f->cfg.tx_flows_max;
    }
    GW_ASSERT(f->ended <= f->sends);
}

static void fuzz_open(struct fuzz *f)
{
    static struct gw_transport transports[4]; /* without and with credit; blasts likewise */
    static struct gw_finish half;
    if (!transports[0].cc) {
        half = percent_policy(50);
        transports[0] = gw_test_transport("smartt", "reps", "trim");
        transports[1] = gw_test_transport("eqds+smartt", "reps", "trim");
        transports[2] = gw_test_transport("follow", "reps", "trim");
        transports[3] = gw_test_transport("eqds+dlcp", "reps", "trim");
    }
    f->cfg = gw_test_host_cfg(OURS, MTU);
    f->cfg.tx_flows_max = 4;
    f->cfg.rx_flows_max = 4;
    f->cfg.span_max = 64;
    f->cfg.control_max = 16;
    f->cfg.announcers_max = 1;
    f->cfg.early_packets = 3;
    f->cfg.ack_every = 1 + take8(f) % GW_ACK_EVERY_MAX;
    f->cfg.ack_delay = 5 * GW_US;
    uint8_t choice = take8(f);
    f->cfg.train = 1 + (choice & 3);
    f->transport = &transports[choice >> 2 & 3];
    f->cfg.blasts_max = 3;
    f->cfg.blast_packets_max = PACKETS_MAX;
    f->cfg.report_every = 20 * GW_US;
    f->cfg.grant = (struct gw_grant_plan){.first = 2, .ahead = 4, .pace = 6553600};
    f->cfg.stall = take8(f) * GW_MS;
    f->now = (gw_time)0 - GW_MS; /* the clock wraps soon */
    gw_test_host_open(&f->host, &f->cfg, PKTS);
    f->node = gw_endpoint_node(f->host.endpoint);
    f->arrived = malloc(sizeof(*f->arrived));
    GW_ASSERT(f->arrived != NULL);
    f->notes = malloc(PACKETS_MAX * sizeof(*f->notes));
    GW_ASSERT(f->notes != NULL);
    f->posted[2] = malloc(MESSAGE_BYTES);
    GW_ASSERT(f->posted[2] != NULL);
    for (uint32_t tag = 0; tag < 2; tag++) {
        f->posted[tag] = malloc(MESSAGE_BYTES);
        GW_ASSERT(f->posted[tag] != NULL);
        gw_endpoint_expect_part(f->host.endpoint,
                                &(struct gw_expect){.peer = THEIRS,
                                                    .tag = tag,
                                                    .data = f->posted[tag],
                                                    .bytes = MESSAGE_BYTES,
                                                    .finish = tag ? &half : NULL,
                                                    .arrived = tag ? f->arrived : NULL,
                                                    .notes = tag ? f->notes : NULL,
                                                    .packets_max = PACKETS_MAX});
    }
}

static void fuzz_close(struct fuzz *f)
{
    const struct gw_endpoint_stats *stats = gw_endpoint_stats(f->host.endpoint);
    poll_events(f);
    GW_ASSERT(output(f, OUTPUTS_MAX));
    total_received += stats->data_received;
    total_sent += stats->data_sent;
    total_malformed += stats->malformed;
    total_acked += f->ended;
    total_credit += stats->credits_sent + stats->credits_received;
    total_notices += stats->notices_sent;
    total_answers += stats->answers_received;
    total_unanswered += stats->bursts_unanswered;
    total_hails += stats->hails_sent;
    total_requests += stats->requests_sent + stats->requests_received;
    total_reports += stats->reports_received;
    total_kept += stats->kept;
    gw_endpoint_fini(f->host.endpoint); /* what is kept for memory that is never posted */
    gw_test_host_close(&f->host);       /* checks that every packet and buffer is back */
    free(f->posted[0]);
    free(f->posted[1]);
    free(f->posted[2]);
    free(f->arrived);
    free(f->notes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz f = {.steps = {data, size}};
    fuzz_open(&f);
    start_message(&f);
    while (f.steps.left) {
        uint8_t step = take8(&f);
        if (step >= POSTS_FROM) {
            post(&f);
            continue;
        }
        switch (step % 10) {
        case 0:
            input_datagram(&f);
            break;
        case 1:
            input_notice(&f);
            break;
        case 2:
        case 3:
        case 4:
            input_packet(&f);
            break;
        case 5:
            pass_time(&f);
            break;
        case 8:
        case 9:
            input_blast(&f);
            break;
        case 6:
            output(&f, 1 + take8(&f) % BATCH);
            poll_events(&f);
            break;
        default:
            start_message(&f);
        }
    }
    fuzz_close(&f);
    return 0;
}

enum {
    ROUNDS = 100000,
};

static void check_reached(void)
{
    print_message("received %llu, sent %llu, malformed %llu, messages acknowledged %llu\n",
                  (unsigned long long)total_received, (unsigned long long)total_sent,
                  (unsigned long long)total_malformed, (unsigned long long)total_acked);
    assert_true(total_received > ROUNDS && total_sent > ROUNDS);
    assert_true(total_malformed > ROUNDS / 10 && total_acked > ROUNDS / 10);
    assert_true(total_credit > ROUNDS / 10);
    print_message("messages of which a part was enough: %llu\n", (unsigned long long)total_partial);
    assert_true(total_partial > ROUNDS / 1000);
    print_message("kept until memory was posted, or for ever: %llu\n",
                  (unsigned long long)total_kept);
    assert_true(total_kept > ROUNDS / 100);
    print_message("notices %llu, answered %llu, bursts without an answer %llu\n",
                  (unsigned long long)total_notices, (unsigned long long)total_answers,
                  (unsigned long long)total_unanswered);
    assert_true(total_notices > ROUNDS / 10 && total_answers > ROUNDS / 1000);
    assert_true(total_unanswered > ROUNDS / 100);
    print_message("hails %llu, requests %llu, reports %llu, blasts %llu\n",
                  (unsigned long long)total_hails, (unsigned long long)total_requests,
                  (unsigned long long)total_reports, (unsigned long long)total_blasts);
    assert_true(total_hails > ROUNDS / 4 && total_requests > ROUNDS / 100);
    assert_true(total_reports > ROUNDS / 1000 && total_blasts > ROUNDS / 1000);
}

const struct gw_test_target gw_test_target = {
    .corpus = "endpoint",
    .seed = 2,
    .rounds = ROUNDS,
    .check_reached = check_reached,
};
