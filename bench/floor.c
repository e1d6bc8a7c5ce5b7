/*
 * gw_bench_floor: what an all-reduce through a host in the middle costs without any protocol.
 *
 *     gw_bench_floor hub ADDRESS:PORT WORKERS BYTES VALUES [GROUP:PORT]
 *     gw_bench_floor worker ADDRESS:PORT RANK WORKERS BYTES VALUES ITERATIONS [GROUP:PORT]
 *
 * The same trains of datagrams (with so many values each), crossings of the kernel and arithmetic
 * as `gradwire bench --via ina` has: a worker quantises its tensor into trains, the hub adds those
 * of all workers and sends the sum to each, or once to the group, and workers write it over the
 * tensor. Nobody checks what comes, answers, repeats or keeps anything; so nothing may be lost, and
 * what is ends the program. Sums are averages, so that tensors, which are equal, stay what they
 * are, and worker 0 checks that. It prints {"cpu_s": X, "times_s": [...]}: CPU seconds of the whole
 * machine for one iteration, as measure.py counts them, and the times of all. Workers begin one at
 * most a window apart.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/cpu.h"
#include "core/quant/kernels.h"
#include "wire/wire.h"

enum {
    TRAIN_MAX = 65507, /* bytes: a UDP datagram, before it is cut */
    WINDOW = 11,       /* trains of a worker on their way: as 512 fragments of 352 values */
    SLOTS = 32,        /* trains that the hub adds up: workers are at most a window apart */
    WORKERS_MAX = 64,
    BUFFER = 32 << 20, /* of sockets */
    PATIENCE_S = 5,    /* then something is lost */
    SCALE = 14,        /* the exponent: sums of all workers fit */
    PERIOD = 1000,     /* of the values */
};

#define HUGE_PAGE ((size_t)2 << 20)

_Noreturn void gw_assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "gw_bench_floor: %s:%d: %s does not hold\n", file, line, condition);
    exit(1);
}

_Noreturn static void fail(const char *what)
{
    fprintf(stderr, "gw_bench_floor: ");
    perror(what);
    exit(1);
}

/* What both ends know. */
struct floor {
    const struct gw_kernels *kernels;
    struct gw_scale scale;
    uint32_t workers;
    uint32_t each;            /* values of a datagram */
    uint32_t datagram;        /* bytes of it */
    uint32_t train;           /* datagrams of it */
    uint64_t values;          /* of the tensor */
    uint32_t trains;          /* that it takes */
    struct sockaddr_in hub;   /* where it listens */
    struct sockaddr_in group; /* for sums; port 0: there is none */
    int fd;                   /* ours */
};

static struct sockaddr_in address_of(const char *text)
{
    struct sockaddr_in addr = {.sin_family = AF_INET};
    char host[64];
    const char *colon = strrchr(text, ':');
    snprintf(host, sizeof(host), "%.*s", colon ? (int)(colon - text) : 0, text);
    if (!colon || inet_pton(AF_INET, host, &addr.sin_addr) != 1)
        fail(text);
    addr.sin_port = htons((uint16_t)atoi(colon + 1));
    return addr;
}

static void set(int fd, int level, int name, const void *value, socklen_t size)
{
    if (setsockopt(fd, level, name, value, size) != 0)
        fail("setsockopt");
}

/* A socket that joins trains, at an address; NULL: any. */
static int open_socket(const struct sockaddr_in *at)
{
    const int on = 1, buffer = BUFFER;
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    set(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    set(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer));
    set(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer));
    set(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    set(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on));
    if (at && bind(fd, (const struct sockaddr *)at, sizeof(*at)) != 0)
        fail("bind");
    return fd;
}

static void *memory_of(size_t size)
{
    size = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void *memory = aligned_alloc(HUGE_PAGE, size);
    if (!memory || madvise(memory, size, MADV_HUGEPAGE) != 0)
        fail("memory");
    memset(memory, 0, size);
    return memory;
}

/* Bytes of train `number`, whose last datagram may be shorter than the others. */
static size_t train_size(const struct floor *floor, uint32_t number)
{
    uint64_t full = (uint64_t)floor->train * floor->each;
    uint64_t left = floor->values - number * full;
    uint64_t values = left < full ? left : full;
    return (values + floor->each - 1) / floor->each * GW_WIRE_DATA_SIZE + 4 * values;
}

static void send_train(const struct floor *floor, const struct sockaddr_in *to, void *bytes,
                       size_t size)
{
    union {
        char bytes[CMSG_SPACE(sizeof(uint16_t))];
        struct cmsghdr align;
    } control = {.align = {.cmsg_level = IPPROTO_UDP,
                           .cmsg_type = UDP_SEGMENT,
                           .cmsg_len = CMSG_LEN(sizeof(uint16_t))}};
    const uint16_t segment = (uint16_t)floor->datagram;
    struct iovec iov = {bytes, size};
    struct msghdr msg = {.msg_name = (void *)to,
                         .msg_namelen = sizeof(*to),
                         .msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof(control)};
    memcpy(CMSG_DATA(&control.align), &segment, sizeof(segment));
    if (sendmsg(floor->fd, &msg, 0) != (ssize_t)size)
        fail("sendmsg");
}

/* Receives a train; returns its number, which begins each of its headers. */
static uint32_t receive_train(int fd, unsigned char *bytes, struct sockaddr_in *from, size_t *size)
{
    socklen_t length = sizeof(*from);
    uint32_t number;
    ssize_t got = recvfrom(fd, bytes, TRAIN_MAX, 0, (struct sockaddr *)from, &length);
    if (got < (ssize_t)sizeof(number))
        fail("recvfrom");
    memcpy(&number, bytes, sizeof(number));
    *size = (size_t)got;
    return number;
}

/* Where the values of a train begin that are `at` bytes behind its own, and how many there are. */
static uint32_t values_at(const struct floor *floor, size_t size, size_t at)
{
    size_t left = size - at < floor->datagram ? size - at : floor->datagram;
    return (uint32_t)(left - GW_WIRE_DATA_SIZE) / 4;
}

/* A sum in work: the train that came first, to which the others are added. */
struct slot {
    unsigned char *bytes;
    uint32_t count; /* of workers */
};

static void add_train(const struct floor *floor, unsigned char *sum, const unsigned char *bytes,
                      size_t size)
{
    for (size_t at = 0; at < size; at += floor->datagram)
        floor->kernels->add(sum + at + GW_WIRE_DATA_SIZE, bytes + at + GW_WIRE_DATA_SIZE,
                            values_at(floor, size, at));
}

static void run_hub(struct floor *floor)
{
    struct slot slots[SLOTS] = {0};
    struct sockaddr_in workers[WORKERS_MAX], from;
    uint32_t known = 0;
    unsigned char *memory = memory_of((SLOTS + 1) * (size_t)TRAIN_MAX);
    unsigned char *spare = memory + SLOTS * (size_t)TRAIN_MAX;
    for (uint32_t i = 0; i < SLOTS; i++)
        slots[i].bytes = memory + i * (size_t)TRAIN_MAX;
    const struct timeval for_ever = {0};
    set(floor->fd, SOL_SOCKET, SO_RCVTIMEO, &for_ever, sizeof(for_ever));
    set(floor->fd, IPPROTO_IP, IP_MULTICAST_IF, &floor->hub.sin_addr, sizeof(floor->hub.sin_addr));
    for (;;) {
        size_t size;
        uint32_t number = receive_train(floor->fd, spare, &from, &size);
        struct slot *slot = &slots[number % SLOTS];
        uint32_t i = 0;
        while (i < known && workers[i].sin_addr.s_addr != from.sin_addr.s_addr)
            i++;
        if (i == known && known < WORKERS_MAX)
            workers[known++] = from;
        if (slot->count == 0) {
            unsigned char *bytes = slot->bytes;
            slot->bytes = spare;
            spare = bytes;
        } else {
            add_train(floor, slot->bytes, spare, size);
        }
        if (++slot->count < floor->workers)
            continue;
        slot->count = 0;
        if (floor->group.sin_port)
            send_train(floor, &floor->group, slot->bytes, size);
        else
            for (i = 0; i < known; i++)
                send_train(floor, &workers[i], slot->bytes, size);
    }
}

static void emit(const struct floor *floor, const float *tensor, uint32_t number, uint32_t first,
                 unsigned char *bytes)
{
    size_t size = train_size(floor, number);
    uint32_t id = first + number;
    tensor += (uint64_t)number * floor->train * floor->each;
    for (size_t at = 0; at < size; at += floor->datagram, tensor += floor->each) {
        memcpy(bytes + at, &id, sizeof(id));
        floor->kernels->quantise[GW_DTYPE_F32](bytes + at + GW_WIRE_DATA_SIZE, tensor,
                                               values_at(floor, size, at), &floor->scale);
    }
    send_train(floor, &floor->hub, bytes, size);
}

/* One all-reduce, whose first train has the number `first` among all; `in` is what sums come by. */
static void reduce(const struct floor *floor, int in, float *tensor, uint32_t first,
                   unsigned char *bytes)
{
    uint32_t sent = 0, received = 0;
    struct sockaddr_in from;
    while (received < floor->trains) {
        size_t size;
        for (; sent < floor->trains && sent - received < WINDOW; sent++)
            emit(floor, tensor, sent, first, bytes);
        uint32_t number = receive_train(in, bytes, &from, &size) - first;
        if (number != received)
            fail("a train is lost");
        float *out = tensor + (uint64_t)number * floor->train * floor->each;
        for (size_t at = 0; at < size; at += floor->datagram, out += floor->each)
            floor->kernels->dequantise[GW_DTYPE_F32](out, bytes + at + GW_WIRE_DATA_SIZE,
                                                     values_at(floor, size, at), &floor->scale);
        received++;
    }
}

static int join(const struct floor *floor)
{
    struct sockaddr_in own;
    socklen_t length = sizeof(own);
    if (!floor->group.sin_port)
        return floor->fd;
    if (connect(floor->fd, (const struct sockaddr *)&floor->hub, sizeof(floor->hub)) != 0 ||
        getsockname(floor->fd, (struct sockaddr *)&own, &length) != 0)
        fail("connect");
    int fd = open_socket(&floor->group);
    const struct ip_mreq request = {floor->group.sin_addr, own.sin_addr};
    set(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof(request));
    return fd;
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* CPU seconds of the whole machine, but of niced programs, since it was started. */
static double machine_cpu_s(void)
{
    long long user, system, irq, softirq;
    FILE *file = fopen("/proc/stat", "r");
    if (!file ||
        fscanf(file, "cpu %lld %*d %lld %*d %*d %lld %lld", &user, &system, &irq, &softirq) != 4)
        fail("/proc/stat");
    fclose(file);
    return (double)(user + system + irq + softirq) / (double)sysconf(_SC_CLK_TCK);
}

/* The first iteration finds out who is there, and does not count. */
static void run_worker(struct floor *floor, uint32_t rank, uint32_t iterations)
{
    unsigned char *bytes = memory_of(TRAIN_MAX);
    float *tensor = memory_of(floor->values * sizeof(*tensor));
    int in = join(floor);
    for (uint64_t i = 0; i < floor->values; i++)
        tensor[i] = (float)(i % PERIOD);
    double *times = memory_of((iterations + 1) * sizeof(*times)), cpu = 0;
    for (uint32_t i = 0; i <= iterations; i++) {
        cpu = i == 1 ? machine_cpu_s() : cpu;
        double begin = now_s();
        reduce(floor, in, tensor, i * floor->trains, bytes);
        times[i] = now_s() - begin;
    }
    cpu = (machine_cpu_s() - cpu) / iterations;
    for (uint64_t i = 0; i < floor->values; i++)
        if (tensor[i] != (float)(i % PERIOD))
            fail("a sum is wrong");
    if (rank == 0) {
        printf("{\"cpu_s\": %.4f, \"times_s\": [%.6f", cpu, times[1]);
        for (uint32_t i = 2; i <= iterations; i++)
            printf(", %.6f", times[i]);
        printf("]}\n");
    }
}

int main(int argc, char **argv)
{
    bool is_hub = argc >= 6 && strcmp(argv[1], "hub") == 0;
    char **rest = argv + (is_hub ? 3 : 4); /* WORKERS BYTES and so on */
    if (!is_hub && (argc < 8 || strcmp(argv[1], "worker") != 0)) {
        fprintf(stderr, "gw_bench_floor: see the head of bench/floor.c\n");
        return 2;
    }
    uint32_t workers = (uint32_t)atoi(rest[0]);
    struct floor floor = {
        .kernels = gw_kernels_best(gw_cpu_features()),
        .scale = gw_scale_named(SCALE, workers),
        .workers = workers,
        .each = (uint32_t)atoi(rest[2]),
        .values = strtoull(rest[1], NULL, 10) / sizeof(float),
        .hub = address_of(argv[2]),
    };
    const char *group = is_hub ? rest[3] : rest[4];
    if (group)
        floor.group = address_of(group);
    floor.datagram = GW_WIRE_DATA_SIZE + 4 * floor.each;
    floor.train = TRAIN_MAX / floor.datagram;
    floor.trains = (uint32_t)((floor.values - 1) / (floor.train * floor.each) + 1);
    floor.fd = open_socket(is_hub ? &floor.hub : NULL);
    if (is_hub)
        run_hub(&floor);
    else
        run_worker(&floor, (uint32_t)atoi(argv[3]), (uint32_t)atoi(rest[3]));
    return 0;
}
