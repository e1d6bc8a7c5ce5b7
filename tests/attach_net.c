/* A network for tests of the attach protocol; see attach_net.h. */
#include "attach_net.h"
#include "support.h"

#include <sodium.h>

#include "base/assert.h"
#include "base/prng.h"

enum {
    PORT_FIRST = 4791,
    INSTANT_MAX = 5000, /* messages without time passing: more is a storm */
};

static struct gw_prng prng;

/* Of the open network: most send few, and a fuzzer opens many. */
static struct gw_test_message messages[GW_TEST_MESSAGES_MAX];
static bool is_open;

static const char *random_name(void)
{
    return "the same in every run";
}

static uint32_t random_number(void)
{
    return (uint32_t)gw_prng_next(&prng);
}

static void random_bytes(void *const bytes, const size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)gw_prng_next(&prng);
}

static struct randombytes_implementation implementation = {
    .implementation_name = random_name,
    .random = random_number,
    .buf = random_bytes,
};

struct gw_test_attach *gw_test_attach_open(uint64_t seed)
{
    struct gw_test_attach *net = calloc(1, sizeof(*net));
    GW_ASSERT(net != NULL && !is_open);
    is_open = true;
    net->messages = messages;
    GW_ASSERT(randombytes_set_implementation(&implementation) == 0 && gw_key_setup() == 0);
    prng = gw_prng_derive(seed, 0);
    net->now = GW_S;
    for (int i = 0; i < GW_TEST_SIDES_MAX; i++) {
        struct gw_test_side *side = &net->sides[i];
        GW_ASSERT(gw_sock_addr_parse("10.0.0.1", (uint16_t)(PORT_FIRST + i), &side->addr) == 0);
        gw_key_from_text("secret", 6, &side->keys[0]);
        side->cfg = (struct gw_neighbours_cfg){
            .address = 100 + (uint32_t)i,
            .role = GW_ATTACH_SWITCH,
            .accepts = true,
            .entropies = (uint16_t)(1 + i),
            .mtu = 1408,
            .peers_max = 16,
            .keys = side->keys,
            .key_count = 1,
            .beat = GW_TEST_BEAT,
            .silence = GW_TEST_SILENCE,
        };
    }
    return net;
}

void gw_test_attach_close(struct gw_test_attach *net)
{
    for (int i = 0; i < GW_TEST_SIDES_MAX; i++)
        gw_test_attach_stop(net, i);
    free(net);
    is_open = false;
}

void gw_test_attach_start(struct gw_test_attach *net, int side)
{
    gw_test_attach_stop(net, side);
    memset(net->sides[side].is_up, 0, sizeof(net->sides[side].is_up));
    net->sides[side].own = gw_neighbours_open(&net->sides[side].cfg);
    GW_ASSERT(net->sides[side].own != NULL);
}

void gw_test_attach_stop(struct gw_test_attach *net, int side)
{
    if (net->sides[side].own)
        gw_neighbours_close(net->sides[side].own);
    net->sides[side].own = NULL;
}

uint32_t gw_test_attach_job(const struct gw_test_attach *net, int side)
{
    return gw_key_job(&net->sides[side].cfg.keys[0], "job");
}

int gw_test_attach_dial(struct gw_test_attach *net, int from, int to)
{
    struct gw_greeting greeting = {.job = gw_test_attach_job(net, from),
                                   .world = 4,
                                   .rank = 3,
                                   .notice = 17,
                                   .is_direct = true};
    return gw_neighbours_dial(net->sides[from].own, &net->sides[to].addr, "the other", &greeting,
                              net->now);
}

void gw_test_attach_send(struct gw_test_attach *net, int from, int to,
                         const uint8_t bytes[GW_ATTACH_SIZE])
{
    GW_ASSERT(net->sent < GW_TEST_MESSAGES_MAX);
    struct gw_test_message *message = &net->messages[net->sent++];
    message->from = (uint8_t)from;
    message->to = (uint8_t)to;
    memcpy(message->bytes, bytes, sizeof(message->bytes));
}

void gw_test_attach_refuse(struct gw_test_attach *net, int side, uint16_t peer,
                           enum gw_attach_reason reason, uint8_t bytes[GW_ATTACH_SIZE])
{
    struct gw_sock_addr to;
    GW_ASSERT(net->sides[side].is_up[peer]);
    net->sides[side].is_up[peer] = false;
    gw_neighbours_refuse(net->sides[side].own, peer, reason, &to, bytes);
}

static void check_event(struct gw_test_side *side, const struct gw_neighbour_event *event)
{
    bool was_up = side->is_up[event->peer];
    switch (event->kind) {
    case GW_NEIGHBOUR_UP:
        GW_ASSERT(!was_up);
        break;
    case GW_NEIGHBOUR_DOWN:
        GW_ASSERT(was_up);
        break;
    case GW_NEIGHBOUR_REFUSED:
        GW_ASSERT(event->dial >= 0);
        break;
    case GW_NEIGHBOUR_GROUP:
        GW_ASSERT(was_up && event->dial >= 0);
        return;
    case GW_NEIGHBOUR_HEARS:
        GW_ASSERT(was_up && event->dial < 0);
        return;
    }
    side->is_up[event->peer] = event->kind == GW_NEIGHBOUR_UP;
}

static void take_events(struct gw_test_side *side)
{
    while (side->own && !side->is_deaf && gw_neighbours_poll(side->own, &side->last)) {
        check_event(side, &side->last);
        side->ups += side->last.kind == GW_NEIGHBOUR_UP;
        side->downs += side->last.kind == GW_NEIGHBOUR_DOWN;
        side->refusals += side->last.kind == GW_NEIGHBOUR_REFUSED;
        side->hears += side->last.kind == GW_NEIGHBOUR_HEARS;
        if (side->last.kind == GW_NEIGHBOUR_UP)
            side->last_up = side->last;
    }
}

static int side_of(const struct gw_test_attach *net, const struct gw_sock_addr *addr)
{
    for (int i = 0; i < GW_TEST_SIDES_MAX; i++)
        if (gw_sock_addr_port(&net->sides[i].addr) == gw_sock_addr_port(addr))
            return i;
    GW_ASSERT(!"an address that nobody has");
    return -1;
}

/* What a side has to say by itself. */
static void speak(struct gw_test_attach *net, int number)
{
    struct gw_test_side *side = &net->sides[number];
    uint8_t bytes[GW_ATTACH_SIZE];
    struct gw_sock_addr to;
    while (side->own) {
        gw_time deadline = gw_neighbours_deadline(side->own);
        if (deadline == GW_TIME_NEVER || gw_time_before(net->now, deadline) ||
            !gw_neighbours_output(side->own, &to, bytes, net->now))
            break;
        gw_test_attach_send(net, number, side_of(net, &to), bytes);
    }
    take_events(side);
}

static void deliver(struct gw_test_attach *net)
{
    uint8_t answer[GW_ATTACH_SIZE];
    struct gw_test_message message = net->messages[net->delivered];
    uint32_t number = net->delivered++;
    struct gw_test_side *to = &net->sides[message.to];
    bool arrives = !net->fate || net->fate(net->context, number, &message);
    if (!arrives || !to->own || !gw_attach_is(message.bytes, sizeof(message.bytes)))
        return;
    uint32_t size = gw_neighbours_input(to->own, &net->sides[message.from].addr, message.bytes,
                                        sizeof(message.bytes), answer, net->now);
    GW_ASSERT(size == 0 || (size == GW_ATTACH_SIZE && gw_attach_is(answer, size)));
    if (size)
        gw_test_attach_send(net, message.to, message.from, answer);
    take_events(to);
}

static void settle(struct gw_test_attach *net)
{
    uint32_t before = net->delivered;
    do {
        for (int i = 0; i < GW_TEST_SIDES_MAX; i++)
            speak(net, i);
        while (net->delivered < net->sent) {
            GW_ASSERT(net->delivered - before < INSTANT_MAX);
            deliver(net);
        }
        for (int i = 0; i < GW_TEST_SIDES_MAX; i++)
            speak(net, i);
    } while (net->delivered < net->sent);
}

void gw_test_attach_run(struct gw_test_attach *net, gw_time duration)
{
    gw_time until = net->now + duration;
    for (;;) {
        gw_time next = until;
        settle(net);
        for (int i = 0; i < GW_TEST_SIDES_MAX; i++) {
            struct gw_neighbours *own = net->sides[i].own;
            if (own && gw_deadline_before(gw_neighbours_deadline(own), next))
                next = gw_neighbours_deadline(own);
        }
        if (!gw_time_before(next, until))
            break;
        GW_ASSERT(gw_time_before(net->now, next)); /* or time would stand still */
        net->now = next;
    }
    net->now = until;
    settle(net);
}

uint32_t gw_test_attach_events(const struct gw_test_attach *net)
{
    uint32_t count = 0;
    for (int i = 0; i < GW_TEST_SIDES_MAX; i++)
        count += net->sides[i].ups + net->sides[i].downs + net->sides[i].refusals;
    return count;
}
