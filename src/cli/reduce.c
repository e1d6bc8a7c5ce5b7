/* Options and reports of all-reduces; see reduce.h. */
#include "cli/reduce.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/cli.h"
#include "cli/json_print.h"
#include "cli/option.h"
#include "lib/faults.h"
#include "net/udp/sock.h"

enum {
    KEY_VIA = 600,
    KEY_JOIN,
    KEY_SERVER,
    KEY_SWITCH,
    KEY_JOB,
    KEY_BIND,
    KEY_KEY,
    KEY_AUTHENTICATE,
    KEY_ENCRYPT,
    KEY_INSECURE,
    KEY_DEADLINE,
    KEY_VALUES,
    KEY_WINDOW,
    KEY_CC,
    KEY_LB,
    KEY_URGENCY,
    KEY_PATHS,
    KEY_RATE,
    KEY_ANNOUNCE,
    KEY_SIGNALS,
    KEY_MULTICAST,
    KEY_THREADS,
    KEY_LOSS,
    KEY_DUPLICATE,
    KEY_DELAY,
    KEY_SEED,
    KEY_JSON,
    FAULTS_MAX = 256,
    TAIL_ITERS = 500, /* with fewer there is no telling of p99.9 */
};

static const struct argp_option options[] = {
    {"via", KEY_VIA, "WAY", 0,
     "ina: added up in switches (default); ps: by a server; ring: from worker to worker", 0},
    {"join", KEY_JOIN, "HOST:PORT", 0, "where rank 0 listens", 0},
    {"server", KEY_SERVER, "HOST:PORT", 0,
     "a gradwire server, or several: HOST:FIRST-LAST, or with commas between (default: rank 0 is "
     "one)",
     0},
    {"switch", KEY_SWITCH, "HOST:PORT", 0,
     "the nearest gradwire switch (default: the server's own)", 0},
    {"job", KEY_JOB, "NAME", 0, "name of the job on a shared server", 0},
    {"bind", KEY_BIND, "ADDRESS", 0, "our own address", 0},
    {"key-file", KEY_KEY, "FILE", 0, "key of the job", 0},
    {"insecure-key-file", KEY_INSECURE, 0, 0, "others may read the key file, and that is meant", 0},
    {"authenticate", KEY_AUTHENTICATE, 0, 0,
     "packets carry a code that only holders of the key can make", 0},
    {"encrypt", KEY_ENCRYPT, 0, 0, "packets are encrypted on every link, and authenticated", 0},
    {"deadline", KEY_DEADLINE, "TIME", 0, "fail after so long without progress (30s)", 0},
    {"values", KEY_VALUES, "N", 0, "elements per fragment (352)", 0},
    {"window", KEY_WINDOW, "N", 0, "fragments on their way (512 or fewer)", 0},
    {"cc", KEY_CC, "NAME", 0, "congestion control of flows between ranks (smartt)", 0},
    {"lb", KEY_LB, "NAME", 0, "load balancing of flows between ranks (reps)", 0},
    {"urgency", KEY_URGENCY, "RULE", 0,
     "by which messages choose the class of their packets: message (default), pias, pfabric", 0},
    {"paths", KEY_PATHS, "N", 0, "UDP source ports to send from (1)", 0},
    {"rate", KEY_RATE, "RATE", 0, "of the links, for flows between ranks (as measured)", 0},
    {"announce", KEY_ANNOUNCE, "HOW", 0,
     "announce bursts to switches: no (default), a threshold of 5 to 75 packets, or a ratio as 1/4",
     0},
    {"signals", KEY_SIGNALS, "WHERE", 0,
     "what switches are told of bursts travels in the dscp (default) or in an IPv4 option", 0},
    {"multicast", KEY_MULTICAST, "GROUP", 0,
     "ADDRESS:PORT to which rank 0 sends sums once for all, or none (default: a group it chooses)",
     0},
    {"threads", KEY_THREADS, "N", 0,
     "I/O threads of a worker, among which large tensors are cut (1)", 0},
    {"loss", KEY_LOSS, "P", 0, "lose this part of our packets on purpose", 1},
    {"duplicate", KEY_DUPLICATE, "P", 0, "send this part of them twice", 1},
    {"delay", KEY_DELAY, "P", 0, "send this part of them late", 1},
    {"seed", KEY_SEED, "N", 0, "of what is random in those", 1},
    {"json", KEY_JSON, 0, 0, "print one JSON value", 2},
    {0},
};

static const char *const via_names[] = {
    [GRADWIRE_VIA_INA] = "ina", [GRADWIRE_VIA_PS] = "ps", [GRADWIRE_VIA_RING] = "ring"};

void gw_reduce_options_init(struct gradwire_options *defaults)
{
    gradwire_options_init(defaults, sizeof(*defaults));
    if (defaults->via == GRADWIRE_VIA_DEFAULT)
        defaults->via = GRADWIRE_VIA_INA;
}

static error_t parse_via(const char *text, struct gw_reduce_args *args)
{
    args->is_send = strcmp(text, "send") == 0;
    args->options.via = GRADWIRE_VIA_RING;
    if (args->is_send)
        return 0;
    for (int i = 0; i <= GRADWIRE_VIA_RING; i++)
        if (strcmp(text, via_names[i]) == 0) {
            args->options.via = (enum gradwire_via)i;
            return 0;
        }
    return gw_option_refuse("via", text, "ina, ps, ring or (bench alone) send");
}

static error_t parse_part(const char *name, const char *text, const char **part)
{
    uint64_t chance;
    if (gw_parse_chance(text, &chance) != 0 || chance > UINT64_C(1) << 31)
        return gw_option_refuse(name, text, "a part from 0 to 0.5");
    *part = text;
    return 0;
}

/* The library knows what is too large; 0 is its default, which is none of the command line. */
static error_t parse_count(const char *name, const char *text, uint32_t *number)
{
    uint64_t value = 0;
    error_t error = gw_option_number(name, text, 1, UINT32_MAX, &value);
    *number = (uint32_t)value;
    return error;
}

static error_t parse_deadline(const char *text, uint32_t *ms)
{
    gw_time time;
    if (gw_parse_time(text, &time) != 0 || time < 100 * GW_MS || time > 3600 * GW_S)
        return gw_option_refuse("deadline", text, "a time from 100ms to 3600s");
    *ms = (uint32_t)(time / GW_MS);
    return 0;
}

/* Faults are no options of a job: the library finds them in the environment (lib/faults.h). Those
 * of the command line take the place of what is there. */
static error_t hand_over_faults(const struct gw_reduce_args *args)
{
    char text[FAULTS_MAX];
    if (!args->lose && !args->duplicate && !args->delay && !args->seed)
        return 0;
    int length = snprintf(text, sizeof(text), "lose=%s,duplicate=%s,delay=%s,seed=%s",
                          args->lose ? args->lose : "0", args->duplicate ? args->duplicate : "0",
                          args->delay ? args->delay : "0", args->seed ? args->seed : "0");
    if (length < (int)sizeof(text) && setenv(GW_FAULTS_VARIABLE, text, 1) == 0)
        return 0;
    gw_complain("--loss, --duplicate, --delay or --seed is too long");
    return EINVAL;
}

/* Where an option that is a text belongs; NULL: it is none of them. */
static const char **text_of(struct gradwire_options *own, int key)
{
    switch (key) {
    case KEY_JOIN:
        return &own->join;
    case KEY_SERVER:
        return &own->server;
    case KEY_SWITCH:
        return &own->switch_;
    case KEY_JOB:
        return &own->job;
    case KEY_BIND:
        return &own->bind;
    case KEY_KEY:
        return &own->key_file;
    case KEY_CC:
        return &own->cc;
    case KEY_LB:
        return &own->lb;
    case KEY_URGENCY:
        return &own->urgency;
    case KEY_ANNOUNCE:
        return &own->announce;
    case KEY_SIGNALS:
        return &own->signals;
    case KEY_MULTICAST:
        return &own->multicast;
    default:
        return NULL;
    }
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct gw_reduce_args *args = state->input;
    struct gradwire_options *own = &args->options;
    const char **place = text_of(own, key);
    uint64_t seed;
    if (place) {
        *place = text;
        return 0;
    }
    switch (key) {
    case KEY_VIA:
        return parse_via(text, args);
    case KEY_AUTHENTICATE:
        own->authenticate = 1;
        return 0;
    case KEY_ENCRYPT:
        own->encrypt = 1;
        return 0;
    case KEY_INSECURE:
        own->insecure_key_file = 1;
        return 0;
    case KEY_DEADLINE:
        return parse_deadline(text, &own->deadline_ms);
    case KEY_VALUES:
        return parse_count("values", text, &own->values);
    case KEY_WINDOW:
        return parse_count("window", text, &own->window);
    case KEY_PATHS:
        return parse_count("paths", text, &own->paths);
    case KEY_THREADS:
        return parse_count("threads", text, &own->threads);
    case KEY_RATE:
        if (gw_parse_rate(text, &own->rate_bps) == 0)
            return 0;
        return gw_option_refuse("rate", text, "a rate from 1Mbps to 400Gbps");
    case KEY_LOSS:
        return parse_part("loss", text, &args->lose);
    case KEY_DUPLICATE:
        return parse_part("duplicate", text, &args->duplicate);
    case KEY_DELAY:
        return parse_part("delay", text, &args->delay);
    case KEY_SEED:
        args->seed = text;
        return gw_option_number("seed", text, 0, INT64_MAX, &seed);
    case KEY_JSON:
        args->json = true;
        return 0;
    case ARGP_KEY_END:
        return hand_over_faults(args);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp gw_reduce_argp = {.options = options, .parser = parse_option};

double gw_reduce_bound(enum gradwire_via via, uint32_t workers, double magnitude,
                       enum gradwire_type type)
{
    static const double roundings[] = {[GRADWIRE_FLOAT32] = 0x1p-24,
                                       [GRADWIRE_FLOAT16] = 0x1p-11,
                                       [GRADWIRE_BFLOAT16] = 0x1p-8,
                                       [GRADWIRE_INT32] = 0};
    if (type == GRADWIRE_INT32)
        return 0;
    double steps = (workers - 1) * roundings[type];
    if (via == GRADWIRE_VIA_RING)
        return steps < 1 ? steps / (1 - steps) * magnitude : INFINITY;
    return workers * 0x1p-28 + magnitude * roundings[type];
}

uint16_t gw_reduce_free_port(void)
{
    struct gw_sock_addr addr;
    char error[GW_NET_ERROR_MAX];
    int fd;
    if (gw_sock_addr_parse("127.0.0.1", 0, &addr) != 0 ||
        gw_sock_open_row(&addr, 1, 0, &fd, error) != 0)
        return 0;
    gw_sock_close_row(&fd, 1);
    return gw_sock_addr_port(&addr);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double *gw_reduce_sorted(const double *times, uint32_t count)
{
    double *sorted = malloc(count * sizeof(*sorted));
    if (!sorted) {
        gw_complain("out of memory");
        return NULL;
    }
    memcpy(sorted, times, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), by_size);
    return sorted;
}

double gw_reduce_mean(const double *times, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += times[i];
    return sum / count;
}

double gw_reduce_quantile(const double *times, uint32_t count, double part)
{
    uint32_t at = (uint32_t)ceil(part * count);
    return times[at ? at - 1 : 0];
}

/* 0 of nothing. */
static double cpu_s_per_gb(const struct gw_reduce_report *report)
{
    double gigabytes = 1e-9 * (double)report->bytes * report->iters;
    return gigabytes > 0 ? report->cpu_s / gigabytes : 0;
}

static int print_json(const struct gw_reduce_report *report, const double *times, double algbw,
                      double busbw)
{
    const struct gradwire_stats *stats = &report->stats;
    uint32_t n = report->iters;
    json_t *root =
        json_pack("{s:i, s:s, s:I, s:I, s:i, s:{s:f, s:f, s:f, s:f, s:f, s:f}, s:f, s:f, s:f, s:f}",
                  "workers", (int)report->workers, "via", via_names[report->via], "elements",
                  (json_int_t)report->elements, "bytes", (json_int_t)report->bytes, "iters", (int)n,
                  "time_ms", "min", 1e3 * times[0], "p50", 1e3 * gw_reduce_quantile(times, n, 0.5),
                  "p99", 1e3 * gw_reduce_quantile(times, n, 0.99), "p99.9",
                  1e3 * gw_reduce_quantile(times, n, 0.999), "max", 1e3 * times[n - 1], "mean",
                  1e3 * gw_reduce_mean(times, n), "algbw_gbps", algbw, "busbw_gbps", busbw,
                  "max_abs_error", report->max_abs_error, "exact_bound", report->exact_bound);
    json_object_set_new(root, "cpu_s_per_gb", json_real(cpu_s_per_gb(report)));
    if (report->may_lose)
        json_object_set_new(root, "missing",
                            json_pack("{s:f, s:f}", "contributions", report->missing[0], "sums",
                                      report->missing[1]));
    json_object_set_new(root, "retransmits", json_integer((json_int_t)stats->retransmits));
    if (report->has_server) {
        double results = (double)stats->server_results;
        json_object_set_new(root, "aggregated_in_switch",
                            json_real(results > 0 ? (double)stats->switch_results / results : 0));
        json_object_set_new(root, "overflow_fragments",
                            json_integer((json_int_t)stats->overflow_fragments));
        json_object_set_new(root, "server_link_bytes",
                            json_integer((json_int_t)stats->server_bytes));
        json_object_set_new(root, "copies_saved", json_integer((json_int_t)stats->copies_saved));
    }
    return gw_json_print(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
}

int gw_reduce_print(const struct gw_reduce_report *report, bool json)
{
    double *times = gw_reduce_sorted(report->times, report->iters);
    if (!times)
        return GW_EXIT_FAILURE;
    double p50 = gw_reduce_quantile(times, report->iters, 0.5);
    double algbw = 8e-9 * (double)report->bytes / p50;
    double busbw = algbw * 2 * (report->workers - 1) / report->workers;
    const struct gradwire_stats *stats = &report->stats;
    if (json) {
        int status = print_json(report, times, algbw, busbw);
        free(times);
        return status;
    }
    printf("%u workers, %.3f MB each, via %s, %u iterations\n", report->workers,
           1e-6 * (double)report->bytes, via_names[report->via], report->iters);
    printf("  time                 %.3f ms median, %.3f to %.3f\n", 1e3 * p50, 1e3 * times[0],
           1e3 * times[report->iters - 1]);
    if (report->iters >= TAIL_ITERS)
        printf("  mean, p99, p99.9     %.3f ms, %.3f ms, %.3f ms\n",
               1e3 * gw_reduce_mean(times, report->iters),
               1e3 * gw_reduce_quantile(times, report->iters, 0.99),
               1e3 * gw_reduce_quantile(times, report->iters, 0.999));
    printf("  bandwidth            %.3f Gb/s of the tensor, %.3f Gb/s as a ring would need\n",
           algbw, busbw);
    printf("  CPU                  %.3f s per GB, all workers together\n", cpu_s_per_gb(report));
    if (report->has_server && stats->server_results)
        printf("  added in switches    %.1f %% of the fragments; %.3f MB into the server's link\n",
               100.0 * (double)stats->switch_results / (double)stats->server_results,
               1e-6 * (double)stats->server_bytes);
    if (stats->copies_saved)
        printf("  saved by multicast   %llu copies of results\n",
               (unsigned long long)stats->copies_saved);
    printf("  sent again           %llu packets of rank 0\n",
           (unsigned long long)stats->retransmits);
    if (report->may_lose)
        printf("  missing              %.3f %% of the workers' tensors, %.3f %% of the sums\n",
               100 * report->missing[0], 100 * report->missing[1]);
    printf("  largest error        %.3g (bound %.3g)\n", report->max_abs_error,
           report->exact_bound);
    free(times);
    return GW_EXIT_OK;
}
