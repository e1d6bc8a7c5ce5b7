/*
 * The loop between nodes and a datapath that is none of ours: where trains go, and that the loop
 * needs no more of a datapath than its contract. Nothing depends on the loop's clock, if a process
 * is not away for 20 ms.
 */
#include "support.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "net/station/loop.h"

enum {
    PORTS = 2,
    PEERS = 4,
    PKTS = 16,
    TOLD = 77, /* an address with a way of its own */
    JOB = 5,
};

/* A node that sends one packet of each port that is asked for, and keeps what arrives. */
struct stub_node {
    struct gw_node node;
    uint16_t ready[PORTS];
    struct gw_pkt *out[PORTS];
    struct gw_pkt *arrived[PKTS];
    uint16_t arrived_at[PKTS];
    uint32_t arrived_count;
};

/* A datapath that keeps what is sent, and receives what the test puts there. */
struct stub_datapath {
    struct gw_datapath base;
    struct gw_datapath_peer peers[PEERS];
    struct gw_pkt *sent[PKTS];
    uint16_t sent_to[PKTS];
    uint32_t sent_count;
    struct gw_pkt *arrives; /* NULL: nothing */
    uint16_t arrives_from;
    bool has_room, is_closed;
    uint32_t flushed;
    int fds[GW_DATAPATH_FDS_MAX]; /* that receive */
    uint32_t fd_count;
    uint32_t silent; /* of them, when it was looked at last */
    uint32_t looked; /* how often it was */
};

struct fixture {
    struct gw_pkt pkts[PKTS];
    struct gw_pkt_pool pool;
    struct stub_node nodes[2];
    struct stub_datapath datapath;
    struct gw_loop *loop;
    char error[GW_NET_ERROR_MAX];
};

static void node_input(struct gw_node *node, uint16_t port, struct gw_pkt **pkts, uint32_t count,
                       gw_time now)
{
    struct stub_node *stub = (struct stub_node *)node;
    (void)now;
    for (uint32_t i = 0; i < count; i++) {
        stub->arrived_at[stub->arrived_count] = port;
        stub->arrived[stub->arrived_count++] = pkts[i];
    }
}

static uint32_t node_output(struct gw_node *node, uint16_t port, struct gw_pkt **pkts, uint32_t max,
                            gw_time now)
{
    struct stub_node *stub = (struct stub_node *)node;
    (void)max, (void)now;
    pkts[0] = stub->out[port];
    stub->out[port] = NULL;
    return pkts[0] != NULL;
}

static void node_expire(struct gw_node *node, gw_time now)
{
    (void)node, (void)now;
    fail(); /* no timer is armed */
}

static void datapath_close(struct gw_datapath *datapath)
{
    ((struct stub_datapath *)datapath)->is_closed = true;
}

static int datapath_receive(struct gw_datapath *datapath, gw_time now,
                            struct gw_datapath_train *train, char *error)
{
    struct stub_datapath *stub = (struct stub_datapath *)datapath;
    (void)now, (void)error;
    stub->silent = datapath->silent;
    stub->looked++;
    if (!stub->arrives)
        return 0;
    train->peer = stub->arrives_from;
    train->count = 1;
    train->pkts[0] = stub->arrives;
    train->controls = 0;
    stub->arrives = NULL;
    return 1;
}

static bool datapath_can_send(const struct gw_datapath *datapath)
{
    return ((const struct stub_datapath *)datapath)->has_room;
}

static int datapath_send(struct gw_datapath *datapath, uint16_t peer, struct gw_pkt **pkts,
                         uint32_t count, char *error)
{
    struct stub_datapath *stub = (struct stub_datapath *)datapath;
    (void)error;
    assert_true(stub->has_room);
    for (uint32_t i = 0; i < count; i++) {
        stub->sent_to[stub->sent_count] = peer;
        stub->sent[stub->sent_count++] = pkts[i];
    }
    return GW_OK;
}

static int datapath_flush(struct gw_datapath *datapath, char *error)
{
    (void)error;
    ((struct stub_datapath *)datapath)->flushed++;
    return GW_OK;
}

static uint32_t datapath_receive_fds(const struct gw_datapath *datapath, int *fds)
{
    const struct stub_datapath *stub = (const struct stub_datapath *)datapath;
    memcpy(fds, stub->fds, sizeof(stub->fds));
    return stub->fd_count;
}

static int datapath_blocked_fd(const struct gw_datapath *datapath)
{
    return ((const struct stub_datapath *)datapath)->has_room ? -1 : 0;
}

static const struct gw_node_ops node_ops = {
    .input = node_input, .output = node_output, .expire = node_expire};

static const struct gw_datapath_ops datapath_ops = {
    .name = "stub",
    .close = datapath_close,
    .receive = datapath_receive,
    .can_send = datapath_can_send,
    .send = datapath_send,
    .flush = datapath_flush,
    .receive_fds = datapath_receive_fds,
    .blocked_fd = datapath_blocked_fd,
};

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    gw_pkt_pool_init(&f->pool, f->pkts, 0, PKTS, NULL);
    f->datapath.base =
        (struct gw_datapath){.ops = &datapath_ops, .peers_max = PEERS, .peers = f->datapath.peers};
    f->datapath.has_room = true;
    f->loop = gw_loop_open(&(struct gw_loop_cfg){
        .datapath = &f->datapath.base, .pool = &f->pool, .peers_max = PEERS, .directs_max = 3});
    assert_non_null(f->loop);
    for (uint16_t i = 0; i < 2; i++) {
        struct stub_node *stub = &f->nodes[i];
        stub->node = (struct gw_node){
            .ops = &node_ops, .deadline = GW_TIME_NEVER, .ready = stub->ready, .port_count = PORTS};
        assert_int_equal(gw_loop_add(f->loop, &stub->node), i);
    }
    *state = f;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    gw_loop_close(f->loop);
    assert_true(f->datapath.is_closed);
    free(f);
    return 0;
}

/* Makes a packet to the address, and the port ready to send it. */
static struct gw_pkt *offer(struct fixture *f, struct gw_loop_port at, uint32_t address)
{
    struct stub_node *stub = &f->nodes[at.node];
    struct gw_pkt *pkt = gw_pkt_claim(&f->pool);
    assert_non_null(pkt);
    pkt->dst = address;
    pkt->flow = 0;
    pkt->buf = GW_BUF_NONE;
    stub->out[at.port] = pkt;
    stub->ready[stub->node.ready_count++] = at.port;
    return pkt;
}

static void turn(struct fixture *f)
{
    assert_int_equal(gw_loop_turn(f->loop, 1, f->error), 0);
}

static void loop_turn__sends_to_the_neighbour_of_the_port(void **state)
{
    struct fixture *f = *state;
    const struct gw_loop_port port = {1, 1};
    gw_loop_link(f->loop, port, 2, true);
    assert_int_equal(gw_loop_direct(f->loop, port, TOLD, 3), 0);
    struct gw_pkt *plain = offer(f, port, TOLD + 1);
    turn(f);
    struct gw_pkt *told = offer(f, port, TOLD);
    turn(f);
    assert_int_equal(f->datapath.sent_count, 2);
    assert_ptr_equal(f->datapath.sent[0], plain);
    assert_int_equal(f->datapath.sent_to[0], 2);
    assert_ptr_equal(f->datapath.sent[1], told);
    assert_int_equal(f->datapath.sent_to[1], 3);
    gw_loop_unlink(f->loop, 2);
    offer(f, port, TOLD + 1);
    turn(f);
    assert_int_equal(f->datapath.sent_count, 2);
    assert_int_equal(gw_loop_stats(f->loop)->unlinked, 1);
}

static void loop_turn__delivers_to_the_port_of_the_neighbour(void **state)
{
    struct fixture *f = *state;
    gw_loop_link(f->loop, (struct gw_loop_port){1, 1}, 2, false);
    struct gw_pkt *pkt = gw_pkt_claim(&f->pool);
    f->datapath.arrives = pkt;
    f->datapath.arrives_from = 2;
    turn(f);
    assert_int_equal(f->nodes[1].arrived_count, 1);
    assert_ptr_equal(f->nodes[1].arrived[0], pkt);
    assert_int_equal(f->nodes[1].arrived_at[0], 1);
    struct gw_pkt *stray = gw_pkt_claim(&f->pool);
    stray->buf = GW_BUF_NONE;
    f->datapath.arrives = stray;
    f->datapath.arrives_from = 3;
    turn(f);
    assert_int_equal(f->nodes[0].arrived_count + f->nodes[1].arrived_count, 1);
    assert_int_equal(gw_loop_stats(f->loop)->unlinked, 1);
}

static void loop_turn__joined_ports_need_no_datapath(void **state)
{
    struct fixture *f = *state;
    const struct gw_loop_port a = {0, 0}, b = {1, 1};
    gw_loop_join(f->loop, a, b);
    f->datapath.has_room = false;
    struct gw_pkt *there = offer(f, a, 1), *back = offer(f, b, 1);
    turn(f);
    assert_int_equal(f->nodes[1].arrived_count, 1);
    assert_ptr_equal(f->nodes[1].arrived[0], there);
    assert_int_equal(f->nodes[0].arrived_count, 1);
    assert_ptr_equal(f->nodes[0].arrived[0], back);
    assert_int_equal(f->datapath.sent_count, 0);
}

/* What is lent takes a buffer on its way to another port of the thread; without one it is lost. */
static void loop_turn__counts_what_it_cannot_keep(void **state)
{
    enum { LEN = 100, BUFS = 1 };
    struct fixture *f = *state;
    const struct gw_loop_port a = {0, 0}, b = {1, 1};
    struct gw_buf_pool bufs;
    uint8_t bytes[LEN];
    void *memory = malloc(gw_buf_pool_size(BUFS, LEN));
    assert_non_null(memory);
    gw_buf_pool_init(&bufs, memory, BUFS, LEN);
    f->pool.bufs = &bufs;
    gw_loop_join(f->loop, a, b);
    for (uint32_t i = 0; i < 3; i++) {
        struct gw_pkt *pkt = offer(f, a, 1);
        memset(bytes, (int)i + 1, LEN);
        pkt->data.len = LEN;
        pkt->buf = gw_buf_lend(&bufs, bytes);
        turn(f);
    }
    assert_int_equal(f->nodes[1].arrived_count, 1);
    assert_int_equal(gw_buf_bytes(&bufs, f->nodes[1].arrived[0]->buf)[LEN - 1], 1);
    assert_int_equal(gw_loop_stats(f->loop)->no_room, 2);
    free(memory);
}

static void loop_turn__waits_for_room(void **state)
{
    struct fixture *f = *state;
    const struct gw_loop_port port = {0, 0};
    gw_loop_link(f->loop, port, 1, true);
    f->datapath.has_room = false;
    struct gw_pkt *pkt = offer(f, port, 1);
    turn(f);
    assert_int_equal(f->datapath.sent_count, 0);
    assert_int_equal(f->datapath.flushed, 1);
    f->datapath.has_room = true;
    turn(f);
    assert_int_equal(f->datapath.sent_count, 1);
    assert_ptr_equal(f->datapath.sent[0], pkt);
    assert_int_equal(f->datapath.flushed, 1);
}

/* Whoever drives the loop knows whether he may leave it alone. */
static void loop_turn__says_what_is_left(void **state)
{
    struct fixture *f = *state;
    const struct gw_loop_port port = {0, 0};
    gw_loop_link(f->loop, port, 1, true);
    assert_int_equal(gw_loop_turn(f->loop, 0, f->error), 0);
    assert_int_equal(gw_loop_due(f->loop), GW_TIME_NEVER);
    assert_false(gw_loop_is_idle(f->loop)); /* it did not sleep */
    turn(f);
    assert_true(gw_loop_is_idle(f->loop));
    f->nodes[0].node.event_count = 1;
    turn(f);
    assert_true(gw_loop_due(f->loop) <= gw_loop_now(f->loop));
    assert_false(gw_loop_is_idle(f->loop));
    f->nodes[0].node.event_count = 0;
    gw_loop_set_rate(f->loop, port, 1000);
    for (int i = 0; i < 2; i++) { /* the first takes eight seconds */
        offer(f, port, 1)->q.size = 1000;
        assert_int_equal(gw_loop_turn(f->loop, 0, f->error), 0);
    }
    assert_true(gw_loop_due(f->loop) > gw_loop_now(f->loop)); /* when the second may leave */
    assert_true(gw_loop_due(f->loop) != GW_TIME_NEVER);
}

/* What ppoll() finds is for the next turn alone: who did not sleep before it has to look, unless he
 * has just seen that nothing is left. */
static void loop_turn__passes_over_what_is_silent(void **state)
{
    struct fixture *f = *state;
    struct stub_datapath *stub = &f->datapath;
    const struct gw_loop_port port = {0, 0};
    gw_loop_link(f->loop, port, 1, true);
    stub->fd_count = GW_DATAPATH_FDS_MAX;
    for (uint32_t i = 0; i < stub->fd_count; i++)
        stub->fds[i] = i == 1 ? -1 : eventfd(i, EFD_NONBLOCK); /* the first has nothing */
    turn(f);
    assert_int_equal(stub->silent, 0);
    turn(f);
    assert_int_equal(stub->silent, 3);
    f->nodes[0].node.event_count = 1; /* for whom the loop does not rest */
    turn(f);
    assert_int_equal(stub->silent, 3);
    uint32_t looked = stub->looked;
    turn(f);
    assert_int_equal(stub->looked, looked);
    turn(f); /* nobody has taken the event, and packets come all the same */
    assert_int_equal(stub->looked, looked + 1);
    f->nodes[0].node.event_count = 0;
    turn(f);
    assert_int_equal(stub->looked, looked + 1);
    turn(f);
    assert_int_equal(stub->looked, looked + 2);
    assert_int_equal(stub->silent, 3);
    assert_int_equal(gw_loop_turn(f->loop, 0, f->error), 0); /* does not rest either */
    turn(f);
    assert_int_equal(stub->silent, 0);
    for (uint32_t i = 0; i < stub->fd_count; i++)
        close(stub->fds[i]);
}

/* How often others had the core first when the loop rested after packets that came one by one. */
static uint64_t yields_after(struct fixture *f, uint32_t count, uint32_t size)
{
    uint64_t before = gw_loop_stats(f->loop)->yields;
    for (uint32_t i = 0; i < count; i++) {
        f->datapath.arrives = gw_pkt_claim(&f->pool); /* nobody's: the loop releases it */
        f->datapath.arrives->q.size = size;
        f->datapath.arrives->buf = GW_BUF_NONE;
        assert_int_equal(gw_loop_turn(f->loop, 0, f->error), 0);
    }
    assert_int_equal(gw_loop_turn(f->loop, gw_loop_now(f->loop) + 20 * GW_MS, f->error), 0);
    return gw_loop_stats(f->loop)->yields - before;
}

static void loop_turn__lets_others_go_first_amid_many_bytes(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(yields_after(f, 31, 1500), 0);
    assert_int_equal(yields_after(f, 32, 1480), 1);
    assert_int_equal(yields_after(f, 5, 8264), 0);
    assert_int_equal(yields_after(f, 6, 8264), 1); /* fewer than a train of these */
    assert_int_equal(gw_loop_stats(f->loop)->unlinked, 31 + 32 + 5 + 6);
}

/* A packet that comes from a neighbour. */
static struct gw_pkt *bring(struct fixture *f, uint32_t address, uint32_t flow)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->pool);
    pkt->dst = address;
    pkt->flow = flow;
    pkt->buf = GW_BUF_NONE;
    f->datapath.arrives = pkt;
    f->datapath.arrives_from = 2;
    turn(f);
    return pkt;
}

/* Past the port that its own port is joined to, and back to that when the way is taken back. */
static void loop_direct_join__leads_to_another_port(void **state)
{
    struct fixture *f = *state;
    const struct gw_loop_port a = {0, 0}, b = {1, 0}, c = {1, 1};
    gw_loop_join(f->loop, a, b);
    assert_int_equal(gw_loop_direct_join(f->loop, a, TOLD, c), 0);
    offer(f, a, TOLD);
    turn(f);
    offer(f, a, TOLD + 1);
    turn(f);
    gw_loop_undirect(f->loop, a, TOLD);
    gw_loop_undirect(f->loop, a, TOLD); /* harmless */
    offer(f, a, TOLD);
    turn(f);
    assert_int_equal(f->nodes[1].arrived_count, 3);
    assert_int_equal(f->nodes[1].arrived_at[0], 1);
    assert_int_equal(f->nodes[1].arrived_at[1], 0);
    assert_int_equal(f->nodes[1].arrived_at[2], 0);
}

static void loop_direct__has_a_limit(void **state)
{
    struct fixture *f = *state;
    const struct gw_loop_port a = {0, 0};
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(gw_loop_direct(f->loop, a, i, 1), 0);
    assert_int_equal(gw_loop_direct(f->loop, a, 3, 1), GW_ERR_NO_ROOM);
    assert_int_equal(gw_loop_direct(f->loop, a, 2, 2), 0); /* another way for one that is there */
    gw_loop_undirect(f->loop, a, 0);
    assert_int_equal(gw_loop_direct(f->loop, a, 3, 1), 0);
    gw_loop_link(f->loop, a, 3, true);
    for (uint32_t i = 0; i < 4; i++) {
        offer(f, a, i);
        turn(f);
    }
    static const uint16_t to[] = {3, 1, 2, 1};
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(f->datapath.sent_to[i], to[i]);
}

/* What neighbours send to a host of this thread needs not pass the node that they are linked to. */
static void loop_receive_at__goes_past_the_neighbours_port(void **state)
{
    struct fixture *f = *state;
    gw_loop_link(f->loop, (struct gw_loop_port){1, 1}, 2, false);
    assert_int_equal(gw_loop_receive_at(f->loop, TOLD, (struct gw_loop_port){0, 1}), 0);
    struct gw_pkt *told = bring(f, TOLD, 0), *other = bring(f, TOLD + 1, 0);
    assert_int_equal(f->nodes[0].arrived_count, 1);
    assert_ptr_equal(f->nodes[0].arrived[0], told);
    assert_int_equal(f->nodes[0].arrived_at[0], 1);
    assert_int_equal(f->nodes[1].arrived_count, 1);
    assert_ptr_equal(f->nodes[1].arrived[0], other);
}

/* Packets of one job go straight, those of others as before. */
static void loop_direct_job__is_of_that_job_alone(void **state)
{
    struct fixture *f = *state;
    const struct gw_loop_port server = {0, 0}, above = {1, 0};
    gw_loop_join(f->loop, server, above);
    gw_loop_link(f->loop, (struct gw_loop_port){1, 1}, 2, false);
    assert_int_equal(gw_loop_receive_job(f->loop, JOB, TOLD, server), 0);
    assert_int_equal(gw_loop_direct_job(f->loop, server, JOB, TOLD + 1, 2), 0);
    bring(f, TOLD, JOB);
    assert_int_equal(f->nodes[0].arrived_count, 1);
    bring(f, TOLD, JOB + 1);
    bring(f, TOLD + 1, JOB); /* not what is sent to us */
    assert_int_equal(f->nodes[0].arrived_count, 1);
    assert_int_equal(f->nodes[1].arrived_count, 2);
    offer(f, server, TOLD + 1)->flow = JOB;
    turn(f);
    assert_int_equal(f->datapath.sent_count, 1);
    assert_int_equal(f->datapath.sent_to[0], 2);
    offer(f, server, TOLD + 1)->flow = JOB + 1;
    turn(f);
    assert_int_equal(f->datapath.sent_count, 1);
    assert_int_equal(f->nodes[1].arrived_count, 3);
    gw_loop_unlink(f->loop, 2);
    gw_loop_forget_job(f->loop, JOB, TOLD);
    offer(f, server, TOLD + 1)->flow = JOB;
    turn(f);
    assert_int_equal(f->datapath.sent_count, 1);
    assert_int_equal(f->nodes[1].arrived_count, 4);
}

static void loop_permit__drops_what_a_host_may_not_say(void **state)
{
    enum { TENANT = 1 };
    struct fixture *f = *state;
    const struct gw_permit permit = {.address = TOLD, .job = JOB};
    gw_loop_link(f->loop, (struct gw_loop_port){1, 0}, 2, true);
    gw_loop_permit(f->loop, 2, &permit, TENANT);
    for (uint32_t i = 0; i < 4; i++) {
        struct gw_pkt *pkt = gw_pkt_claim(&f->pool);
        *pkt = (struct gw_pkt){
            .q = {.kind = GW_PKT_GRAD},
            .src = i & 1 ? TOLD : TOLD + 1,
            .flow = i & 2 ? JOB : JOB + 1,
            .buf = GW_BUF_NONE,
        };
        f->datapath.arrives = pkt;
        f->datapath.arrives_from = 2;
        turn(f);
        assert_int_equal(f->nodes[1].arrived_count, i == 3);
    }
    assert_int_equal(gw_loop_forbidden(f->loop, TENANT), 3);
    assert_int_equal(gw_loop_forbidden(f->loop, 0), 0);
    gw_loop_unlink(f->loop, 2); /* whoever gets the number next is somebody else */
    gw_loop_link(f->loop, (struct gw_loop_port){1, 0}, 2, true);
    f->datapath.arrives = f->nodes[1].arrived[0];
    f->datapath.arrives->src = TOLD + 1;
    turn(f);
    assert_int_equal(f->nodes[1].arrived_count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(loop_turn__sends_to_the_neighbour_of_the_port, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(loop_turn__delivers_to_the_port_of_the_neighbour,
                                        open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(loop_turn__joined_ports_need_no_datapath, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(loop_turn__counts_what_it_cannot_keep, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(loop_turn__waits_for_room, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(loop_turn__says_what_is_left, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(loop_turn__passes_over_what_is_silent, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(loop_turn__lets_others_go_first_amid_many_bytes,
                                        open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(loop_direct_join__leads_to_another_port, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(loop_direct__has_a_limit, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(loop_receive_at__goes_past_the_neighbours_port,
                                        open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(loop_permit__drops_what_a_host_may_not_say, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(loop_direct_job__is_of_that_job_alone, open_fixture,
                                        close_fixture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
