/*
 * One flow between two real processes over UDP on loopback: the same endpoint, smartt and reps as
 * in the simulator, this time under the kernel's clock and sockets.
 *
 * The test runs itself again as the receiving process. A socket pair between the two carries the
 * port numbers, and its end tells the receiver to stop. The clock guards against hanging only.
 */
#define _GNU_SOURCE
#include "full_socket.h"
#include "host.h"
#include "support.h"

#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "net/station/loop.h"
#include "net/udp/sock.h"
#include "net/udp/udp.h"

enum {
    ADDRESS_SENDER = 1,
    ADDRESS_RECEIVER = 2,
    MTU = 1400,
    PEER = 3, /* number of the other one, in both */
    PKTS = 2048,
    ENTROPIES = 8,
    TAG = 42,
    KERNEL_BUFFER = 1 << 20,
    CHOPPY_EVERY = 3,
    LOSS_PERCENT = 5,
};

#define BYTES    ((size_t)8 << 20)
#define GUARD    (60 * GW_S)
#define RATE_BPS UINT64_C(1000000000)
#define BRTT     GW_MS /* well above the loopback's, for a busy machine */
#define COOKIE   UINT64_C(0x5eedc0de12340000)

static const uint64_t seed = 4791;

/* What differs between the cases; the second process gets it as arguments. */
struct wire_case {
    const char *address;
    uint64_t lose_q32;
    uint32_t train;
    uint32_t ack_every;
    bool has_trains; /* the kernel cuts and joins them */
    bool choppy;     /* every third time the socket has no room */
};

/* A host and its datapath. */
struct process {
    struct gw_test_host host;
    struct gw_endpoint_cfg cfg;
    struct gw_datapath *udp;
    struct gw_loop *loop;
    char error[GW_NET_ERROR_MAX];
};

/* Opens everything, and exchanges ports with the other process over `control`. */
static void process_open(struct process *process, const struct wire_case *test, uint32_t address,
                         int control)
{
    bool v6 = strchr(test->address, ':') != NULL;
    gw_test_full_socket(test->choppy ? CHOPPY_EVERY : 0);
    process->cfg = gw_test_host_cfg(address, MTU);
    process->cfg.hdr = v6 ? GW_DATAPATH_HDR_IPV6 : GW_DATAPATH_HDR_IPV4;
    process->cfg.train = test->train;
    process->cfg.ack_every = test->ack_every;
    process->cfg.ack_delay = 100 * GW_US;
    process->cfg.stall = GUARD / 2;
    process->cfg.lends = true;
    gw_test_host_open(&process->host, &process->cfg, PKTS);
    struct gw_datapath_cfg cfg = {
        .pool = &process->host.pool,
        .address = test->address,
        .entropies = ENTROPIES,
        .mtu = MTU,
        .buffer_bytes = KERNEL_BUFFER,
        .peers_max = PEER + 1,
        .has_trains = test->has_trains,
        .faults = {.lose_q32 = test->lose_q32,
                   .duplicate_q32 = test->lose_q32,
                   .delay_q32 = test->lose_q32,
                   .seed = seed + address},
    };
    int error = gw_datapath_open(&gw_datapath_udp, &cfg, &process->udp, process->error);
    if (error)
        print_error("%s\n", process->error);
    assert_int_equal(error, 0);
    process->loop = gw_loop_open(&(struct gw_loop_cfg){
        .datapath = process->udp, .pool = &process->host.pool, .peers_max = cfg.peers_max});
    assert_non_null(process->loop);
    uint16_t node = gw_loop_add(process->loop, gw_endpoint_node(process->host.endpoint));
    struct gw_datapath_peer peer = {
        .entropies = ENTROPIES, .tx_cookie = COOKIE | PEER, .rx_cookie = COOKIE | PEER};
    uint16_t ours = gw_sock_addr_port(gw_datapath_address(process->udp)), theirs = 0;
    assert_int_equal(write(control, &ours, sizeof(ours)), sizeof(ours));
    assert_int_equal(read(control, &theirs, sizeof(theirs)), sizeof(theirs));
    assert_int_equal(gw_sock_addr_parse(test->address, theirs, &peer.addr), 0);
    gw_datapath_set_peer(process->udp, &peer);
    gw_loop_link(process->loop, (struct gw_loop_port){node, 0}, PEER, true);
}

/* Answers to retransmissions may still be queued when the other side is content. */
static void process_close(struct process *process)
{
    struct gw_node *node = gw_endpoint_node(process->host.endpoint);
    struct gw_pkt *pkt;
    uint32_t result;
    gw_time now = gw_loop_now(process->loop);
    gw_loop_close(process->loop);
    do {
        result = gw_node_output(node, 0, &pkt, 1, now);
        if (result & ~GW_OUTPUT_MORE)
            gw_pkt_release(&process->host.pool, pkt);
    } while (result & GW_OUTPUT_MORE);
    gw_test_host_close(&process->host);
}

/* Runs until the application has an event, which must come before the guard. */
static struct gw_event next_event(struct process *process)
{
    struct gw_event event;
    gw_time guard = gw_loop_now(process->loop) + GUARD;
    while (gw_endpoint_poll(process->host.endpoint, &event, 1) == 0) {
        assert_true(gw_time_before(gw_loop_now(process->loop), guard));
        int error = gw_loop_turn(process->loop, guard, process->error);
        if (error)
            print_error("%s\n", process->error);
        assert_int_equal(error, 0);
    }
    return event;
}

/* What the second process does. */
static void receive_all(const struct wire_case *test, int control)
{
    struct process process;
    unsigned char *expected = malloc(BYTES), *received = calloc(1, BYTES);
    assert_non_null(expected);
    assert_non_null(received);
    gw_test_fill(expected, BYTES, seed);
    process_open(&process, test, ADDRESS_RECEIVER, control);
    assert_int_equal(
        gw_endpoint_expect(process.host.endpoint, ADDRESS_SENDER, TAG, received, BYTES), 0);
    struct gw_event event = next_event(&process);
    assert_int_equal(event.kind, GW_EVENT_RECEIVED);
    assert_int_equal(event.peer, ADDRESS_SENDER);
    assert_int_equal(event.tag, TAG);
    assert_true(event.bytes == BYTES);
    assert_memory_equal(received, expected, BYTES);
    /* The last ACK may be lost: answer until the sender is done and hangs up. */
    struct pollfd hangup = {.fd = control, .events = POLLIN};
    gw_time guard = gw_loop_now(process.loop) + GUARD;
    while (poll(&hangup, 1, 0) == 0) {
        gw_time now = gw_loop_now(process.loop);
        assert_true(gw_time_before(now, guard));
        assert_int_equal(gw_loop_turn(process.loop, now + 10 * GW_MS, process.error), 0);
    }
    process_close(&process);
    free(expected);
    free(received);
}

/* The command line of the second process. */
static struct {
    struct wire_case test;
    int control;
} receiver_args;

static void udp_run__receives_in_the_second_process(void **state)
{
    (void)state;
    receive_all(&receiver_args.test, receiver_args.control);
}

static int receiver_main(char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(udp_run__receives_in_the_second_process),
    };
    receiver_args.control = atoi(argv[2]);
    receiver_args.test = (struct wire_case){
        .address = argv[1],
        .lose_q32 = strtoull(argv[3], NULL, 10),
        .train = (uint32_t)atoi(argv[4]),
        .ack_every = (uint32_t)atoi(argv[5]),
        .has_trains = atoi(argv[6]),
        .choppy = atoi(argv[7]),
    };
    return cmocka_run_group_tests_name("receiver", tests, NULL, NULL);
}

/* Starts this program again as the receiver; `control` is its end of the socket pair. */
static pid_t receiver_start(const struct wire_case *test, int control)
{
    char arguments[6][32];
    int inherited = dup(control); /* unlike the original, it stays open across exec */
    snprintf(arguments[0], sizeof(arguments[0]), "%d", inherited);
    snprintf(arguments[1], sizeof(arguments[1]), "%llu", (unsigned long long)test->lose_q32);
    snprintf(arguments[2], sizeof(arguments[2]), "%u", test->train);
    snprintf(arguments[3], sizeof(arguments[3]), "%u", test->ack_every);
    snprintf(arguments[4], sizeof(arguments[4]), "%d", test->has_trains);
    snprintf(arguments[5], sizeof(arguments[5]), "%d", test->choppy);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "udp_flow_test", test->address, arguments[0], arguments[1],
              arguments[2], arguments[3], arguments[4], arguments[5], (char *)NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    close(inherited);
    return pid;
}

static void send_all(const struct wire_case *test, int control)
{
    struct process process;
    struct gw_transport transport = gw_test_transport("smartt", "reps", "timeout");
    unsigned char *data = malloc(BYTES);
    uint32_t flow;
    assert_non_null(data);
    gw_test_fill(data, BYTES, seed);
    process_open(&process, test, ADDRESS_SENDER, control);
    assert_int_equal(gw_algo_set(&transport.lb->algo, transport.lb_cfg.bytes, "entropies", "8"), 0);
    struct gw_send send = {
        .peer = ADDRESS_RECEIVER,
        .bytes = BYTES,
        .data = data,
        .tag = TAG,
        .class = GW_CLASS_DATA_MAX,
        .transport = &transport,
        .path = gw_test_path(&process.cfg, RATE_BPS, BRTT),
    };
    assert_int_equal(
        gw_endpoint_send(process.host.endpoint, &send, &flow, gw_loop_now(process.loop)), 0);
    struct gw_event event = next_event(&process);
    assert_int_equal(event.kind, GW_EVENT_SENT);
    assert_int_equal(event.flow, flow);
    assert_int_equal(event.peer, ADDRESS_RECEIVER);
    assert_true(event.bytes == BYTES);

    const struct gw_datapath_stats *stats = gw_datapath_stats(process.udp);
    const struct gw_endpoint_stats *counts = gw_endpoint_stats(process.host.endpoint);
    print_message("%s: sent %llu, lost %llu, blocked %llu, retransmits %llu, %llu us\n",
                  test->address, (unsigned long long)stats->sent, (unsigned long long)stats->lost,
                  (unsigned long long)stats->blocked, (unsigned long long)event.retransmits,
                  (unsigned long long)(event.at / GW_US));
    /* Of what the endpoint sent, only the last train may still wait for the socket. */
    uint64_t gone = stats->sent + stats->lost + stats->send_errors;
    if (test->lose_q32 == 0)
        assert_true(gone <= counts->data_sent && counts->data_sent - gone <= GW_DATAPATH_TRAIN_MAX);
    if (test->has_trains)
        assert_true(stats->tx_trains < stats->sent);
    assert_true(counts->data_sent - counts->retransmits == (BYTES + MTU - 1) / MTU);
    assert_true(stats->malformed + stats->runts + stats->wrong_version + stats->wrong_cookie == 0);
    /* Stray is no fault: answers to retransmissions may come after the flow's end. */
    assert_true(counts->malformed == 0);
    if (test->lose_q32)
        assert_true(stats->lost > 0 && event.retransmits > 0);
    if (test->choppy)
        assert_true(stats->blocked > 0);
    process_close(&process);
    free(data);
}

static void run_case(const struct wire_case *test)
{
    int control[2], status;
    print_message("seed %llu\n", (unsigned long long)seed);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control), 0);
    pid_t pid = receiver_start(test, control[1]);
    close(control[1]);
    send_all(test, control[0]);
    close(control[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void udp_run__moves_a_message_between_processes(void **state)
{
    (void)state;
    run_case(&(struct wire_case){.address = "127.0.0.1", .train = 1, .ack_every = 1});
}

static void udp_run__moves_a_message_in_trains(void **state)
{
    (void)state;
    run_case(&(struct wire_case){
        .address = "127.0.0.1", .train = 32, .ack_every = 8, .has_trains = true});
}

static void udp_run__moves_a_message_over_ipv6(void **state)
{
    (void)state;
    struct gw_sock_addr addr;
    char error[GW_NET_ERROR_MAX];
    int fd;
    assert_int_equal(gw_sock_addr_parse("::1", 0, &addr), 0);
    int status = gw_sock_open_row(&addr, 1, 0, &fd, error);
    if (status != 0) {
        /* A machine without IPv6: it must be told so, and which address it was. */
        assert_int_equal(status, GW_ERR_SYSTEM);
        assert_non_null(strstr(error, "::1"));
        return;
    }
    gw_sock_close_row(&fd, 1);
    run_case(&(struct wire_case){.address = "::1", .train = 4, .ack_every = 4, .has_trains = true});
}

static void udp_run__survives_lost_doubled_and_late_packets(void **state)
{
    (void)state;
    run_case(&(struct wire_case){.address = "127.0.0.1",
                                 .lose_q32 = (UINT64_C(1) << 32) * LOSS_PERCENT / 100,
                                 .train = 16,
                                 .ack_every = 2,
                                 .has_trains = true});
    run_case(&(struct wire_case){.address = "127.0.0.1",
                                 .lose_q32 = (UINT64_C(1) << 32) * LOSS_PERCENT / 100,
                                 .train = 1,
                                 .ack_every = 1});
}

static void udp_run__keeps_what_the_socket_has_no_room_for(void **state)
{
    (void)state;
    run_case(
        &(struct wire_case){.address = "127.0.0.1", .train = 8, .ack_every = 2, .choppy = true});
    run_case(&(struct wire_case){
        .address = "127.0.0.1", .train = 8, .ack_every = 2, .has_trains = true, .choppy = true});
}

int main(int argc, char **argv)
{
    if (argc == 8)
        return receiver_main(argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(udp_run__moves_a_message_between_processes),
        cmocka_unit_test(udp_run__moves_a_message_in_trains),
        cmocka_unit_test(udp_run__moves_a_message_over_ipv6),
        cmocka_unit_test(udp_run__survives_lost_doubled_and_late_packets),
        cmocka_unit_test(udp_run__keeps_what_the_socket_has_no_room_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
