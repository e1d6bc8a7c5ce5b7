/*
 * Flow lists in htsim's connection-matrix format, so that the field's files run unchanged.
 *
 *     Nodes 16
 *     Connections 2
 *     Triggers 1
 *     0->13 id 1 start 0 size 2000000 send_done_trigger 1
 *     13->0 id 2 trigger 1 size 2000000
 *     trigger id 1 oneshot
 *
 * Start times are picoseconds. A flow has either a start or a trigger that starts it; it may fire
 * one trigger when its sender is done and one when its receiver is. A oneshot starts all its flows
 * at the first firing, a multishot one more flow with every firing, a barrier all of them at the
 * last of `count` firings. A size of 0 is a flow without end: it runs in the background. `prio` is
 * read and has no effect. Lines of failed links are refused: what fails belongs in the scenario,
 * where it has a time.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "topo/memory.h"
#include "workload/generate.h"

#define SIZE_MISSING  UINT64_MAX
#define COUNT_MISSING UINT64_MAX
/* More than a run moves, and few enough packets for any MTU. */
#define SIZE_ENDLESS UINT64_C(4294967294)

struct matrix_cfg {
    char file[GW_PARAM_TEXT_MAX];
    struct gw_message_worth worth;
};

enum trigger_kind {
    TRIGGER_ONESHOT,
    TRIGGER_MULTISHOT,
    TRIGGER_BARRIER,
};

/* A flow as written; trigger fields hold ids of the file, 0 for none. */
struct connection {
    struct gw_flow_spec flow;
    uint32_t trigger, sent_trigger, received_trigger;
    uint32_t line;
};

struct trigger {
    uint32_t id; /* of the file, not 0 */
    enum trigger_kind kind;
    uint32_t count; /* firings that a barrier waits for */
    uint32_t line;
};

struct matrix {
    struct gw_workload_file file;
    struct gw_workload_ctx *ctx;
    struct connection *connections;
    struct trigger *triggers;
    uint32_t connection_count, connection_room;
    uint32_t trigger_count, trigger_room;
    uint64_t nodes, triggers_said; /* as the head says; 0: not said */
    uint64_t connections_said;     /* COUNT_MISSING: not said */
};

#define refuse(matrix, ...)                                                                        \
    gw_workload_file_error(&(matrix)->file, (matrix)->ctx, GW_ERR_INVALID, __VA_ARGS__)

/* The next word of the line, or NULL. */
static char *next_word(char **rest)
{
    return strtok_r(NULL, " \t", rest);
}

/* Reads the number that follows the word `name`. */
static int read_number(struct matrix *matrix, char **rest, const char *name, uint64_t max,
                       uint64_t *number)
{
    const char *text = next_word(rest);
    if (!text)
        return refuse(matrix, "%s: a number must follow", name);
    uint64_t value;
    int error = gw_parse_count(text, &value);
    if (error || value > max)
        return refuse(matrix, "%s: %s: %s", name, gw_error_message(error ? error : GW_ERR_RANGE),
                      text);
    *number = value;
    return GW_OK;
}

/* Reads the number of a trigger or a flow, which is not 0. */
static int read_id(struct matrix *matrix, char **rest, const char *name, uint32_t *id)
{
    uint64_t value = 0;
    int error = read_number(matrix, rest, name, UINT32_MAX - 1, &value);
    if (!error && value == 0)
        error = refuse(matrix, "%s: 0 is not allowed", name);
    *id = (uint32_t)value;
    return error;
}

/* Reads "0->13". */
static int read_pair(struct matrix *matrix, const char *word, struct gw_flow_spec *flow)
{
    unsigned src, dst;
    int used = 0;
    if (sscanf(word, "%9u->%9u%n", &src, &dst, &used) != 2 || word[used] != '\0')
        return refuse(matrix, "a pair of hosts must be like 0->13, not %s", word);
    uint32_t host_count = matrix->ctx->topo->host_count;
    uint32_t larger = src > dst ? src : dst;
    if (larger >= host_count)
        return refuse(matrix, "host %u does not exist: the topology has %u hosts", larger,
                      host_count);
    if (matrix->nodes && larger >= matrix->nodes)
        return refuse(matrix, "host %u does not exist: the file says Nodes %llu", larger,
                      (unsigned long long)matrix->nodes);
    if (src == dst)
        return refuse(matrix, "host %u sends to itself", src);
    flow->src = src;
    flow->dst = dst;
    return GW_OK;
}

/* Reads one `word value` of a connection. */
static int read_attribute(struct matrix *matrix, const char *word, char **rest,
                          struct connection *connection)
{
    struct gw_flow_spec *flow = &connection->flow;
    uint64_t ignored;
    if (strcmp(word, "id") == 0)
        return read_id(matrix, rest, word, &flow->id);
    if (strcmp(word, "start") == 0)
        return read_number(matrix, rest, word, INT64_MAX, &flow->start);
    if (strcmp(word, "size") == 0)
        return read_number(matrix, rest, word, INT64_MAX, &flow->bytes);
    if (strcmp(word, "trigger") == 0)
        return read_id(matrix, rest, word, &connection->trigger);
    if (strcmp(word, "send_done_trigger") == 0)
        return read_id(matrix, rest, word, &connection->sent_trigger);
    if (strcmp(word, "recv_done_trigger") == 0)
        return read_id(matrix, rest, word, &connection->received_trigger);
    if (strcmp(word, "prio") == 0)
        return read_number(matrix, rest, word, INT64_MAX, &ignored);
    return refuse(matrix, "unknown word: %s", word);
}

static int read_connection(struct matrix *matrix, const char *pair, char **rest)
{
    struct connection connection = {
        .flow = {.bytes = SIZE_MISSING,
                 .start = GW_TIME_NEVER,
                 .id = matrix->connection_count,
                 .fires_sent = GW_TRIGGER_NONE,
                 .fires_received = GW_TRIGGER_NONE},
        .line = matrix->file.line,
    };
    int error = read_pair(matrix, pair, &connection.flow);
    const char *word;
    while (!error && (word = next_word(rest)))
        error = read_attribute(matrix, word, rest, &connection);
    if (error)
        return error;
    bool starts = connection.flow.start != GW_TIME_NEVER;
    if (starts == (connection.trigger != 0))
        return refuse(matrix, "a flow needs either a start or a trigger");
    if (connection.flow.bytes == SIZE_MISSING)
        return refuse(matrix, "a flow needs a size");
    if (matrix->connection_count == GW_WORKLOAD_FLOWS_MAX)
        return refuse(matrix, "more than %d flows", GW_WORKLOAD_FLOWS_MAX);
    matrix->connections = gw_memory_grow(matrix->connections, &matrix->connection_room,
                                         matrix->connection_count + 1, sizeof(connection));
    matrix->connections[matrix->connection_count++] = connection;
    return GW_OK;
}

static bool is_trigger_kind(const char *word, enum trigger_kind *kind)
{
    static const char *const names[] = {[TRIGGER_ONESHOT] = "oneshot",
                                        [TRIGGER_MULTISHOT] = "multishot",
                                        [TRIGGER_BARRIER] = "barrier"};
    for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], word) == 0) {
            *kind = (enum trigger_kind)i;
            return true;
        }
    return false;
}

static int read_trigger(struct matrix *matrix, char **rest)
{
    struct trigger trigger = {.line = matrix->file.line};
    uint32_t kind_count = 0;
    int error = GW_OK;
    const char *word;
    while (!error && (word = next_word(rest))) {
        if (strcmp(word, "id") == 0)
            error = read_id(matrix, rest, word, &trigger.id);
        else if (strcmp(word, "count") == 0)
            error = read_id(matrix, rest, word, &trigger.count);
        else if (is_trigger_kind(word, &trigger.kind))
            kind_count++;
        else
            error = refuse(matrix, "unknown word: %s", word);
    }
    if (error)
        return error;
    if (trigger.id == 0 || kind_count != 1)
        return refuse(matrix, "a trigger needs an id and one of oneshot, multishot and barrier");
    if (trigger.kind == TRIGGER_BARRIER && trigger.count == 0)
        return refuse(matrix, "a barrier needs a count");
    matrix->triggers = gw_memory_grow(matrix->triggers, &matrix->trigger_room,
                                      matrix->trigger_count + 1, sizeof(trigger));
    matrix->triggers[matrix->trigger_count++] = trigger;
    return GW_OK;
}

static int read_nodes(struct matrix *matrix, char **rest)
{
    int error = read_number(matrix, rest, "Nodes", UINT32_MAX, &matrix->nodes);
    uint32_t host_count = matrix->ctx->topo->host_count;
    if (!error && matrix->nodes > host_count)
        error = refuse(matrix, "Nodes %llu, but the topology has %u hosts",
                       (unsigned long long)matrix->nodes, host_count);
    return error;
}

static int read_line(struct matrix *matrix)
{
    char *rest;
    const char *word = strtok_r(matrix->file.text, " \t", &rest);
    if (strcmp(word, "Nodes") == 0)
        return read_nodes(matrix, &rest);
    if (strcmp(word, "Connections") == 0)
        return read_number(matrix, &rest, word, UINT32_MAX, &matrix->connections_said);
    if (strcmp(word, "Triggers") == 0)
        return read_number(matrix, &rest, word, UINT32_MAX, &matrix->triggers_said);
    if (strcmp(word, "trigger") == 0)
        return read_trigger(matrix, &rest);
    if (strcmp(word, "Failures") == 0 || strcmp(word, "failure") == 0)
        return refuse(matrix, "what fails is said under `faults` of the scenario, not here");
    if (strstr(word, "->"))
        return read_connection(matrix, word, &rest);
    return refuse(matrix, "unknown word: %s", word);
}

static int read_file(struct matrix *matrix)
{
    int more, error = GW_OK;
    while (!error && (more = gw_workload_read(&matrix->file, matrix->ctx)) != 0)
        error = more < 0 ? more : read_line(matrix);
    if (error)
        return error;
    if (matrix->connections_said == COUNT_MISSING)
        return refuse(matrix, "it must say how many Connections it has");
    if (matrix->connections_said != matrix->connection_count)
        return refuse(matrix, "the file says Connections %llu, but has %u",
                      (unsigned long long)matrix->connections_said, matrix->connection_count);
    if (matrix->triggers_said != matrix->trigger_count)
        return refuse(matrix, "the file says Triggers %llu, but has %u",
                      (unsigned long long)matrix->triggers_said, matrix->trigger_count);
    return GW_OK;
}

static int compare_triggers(const void *a, const void *b)
{
    const struct trigger *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Index in the sorted list of the trigger that a line names; GW_TRIGGER_NONE for id 0. */
static int find_trigger(struct matrix *matrix, uint32_t id, uint32_t line, uint32_t *index)
{
    *index = GW_TRIGGER_NONE;
    if (id == 0)
        return GW_OK;
    const struct trigger key = {.id = id};
    const struct trigger *found =
        matrix->trigger_count
            ? bsearch(&key, matrix->triggers, matrix->trigger_count, sizeof(key), compare_triggers)
            : NULL;
    if (!found) {
        matrix->file.line = line;
        return refuse(matrix, "trigger %u is not defined", id);
    }
    *index = (uint32_t)(found - matrix->triggers);
    return GW_OK;
}

static int sort_triggers(struct matrix *matrix)
{
    if (matrix->trigger_count)
        qsort(matrix->triggers, matrix->trigger_count, sizeof(matrix->triggers[0]),
              compare_triggers);
    for (uint32_t i = 1; i < matrix->trigger_count; i++) {
        const struct trigger *a = &matrix->triggers[i - 1], *b = &matrix->triggers[i];
        if (a->id != b->id)
            continue;
        matrix->file.line = a->line > b->line ? a->line : b->line;
        return refuse(matrix, "trigger %u is defined twice", a->id);
    }
    return GW_OK;
}

/* Replaces ids of triggers by indices in the sorted list. */
static int resolve(struct matrix *matrix, uint32_t first_trigger)
{
    int error = sort_triggers(matrix);
    for (uint32_t i = 0; i < matrix->connection_count && !error; i++) {
        struct connection *c = &matrix->connections[i];
        uint32_t sent, received;
        if ((error = find_trigger(matrix, c->trigger, c->line, &c->trigger)) ||
            (error = find_trigger(matrix, c->sent_trigger, c->line, &sent)) ||
            (error = find_trigger(matrix, c->received_trigger, c->line, &received)))
            return error;
        if (sent != GW_TRIGGER_NONE)
            c->flow.fires_sent = first_trigger + sent;
        if (received != GW_TRIGGER_NONE)
            c->flow.fires_received = first_trigger + received;
    }
    return error;
}

/* Appends flows and triggers; the flows of a trigger keep the order of the file. */
static void append(const struct matrix *matrix, struct gw_workload *workload)
{
    uint32_t first_flow = workload->flow_count;
    uint32_t *first = gw_memory_zeroed(matrix->trigger_count + 1, sizeof(*first));
    uint32_t *started = gw_memory_zeroed(matrix->connection_count, sizeof(*started));
    for (uint32_t i = 0; i < matrix->connection_count; i++) {
        struct gw_flow_spec flow = matrix->connections[i].flow;
        flow.background = flow.bytes == 0;
        if (flow.background)
            flow.bytes = SIZE_ENDLESS;
        gw_workload_add_flow(workload, &flow);
        if (matrix->connections[i].trigger != GW_TRIGGER_NONE)
            first[matrix->connections[i].trigger + 1]++;
    }
    for (uint32_t t = 0; t < matrix->trigger_count; t++)
        first[t + 1] += first[t];
    for (uint32_t i = 0; i < matrix->connection_count; i++)
        if (matrix->connections[i].trigger != GW_TRIGGER_NONE)
            started[first[matrix->connections[i].trigger]++] = first_flow + i;
    /* Now first[t] is where the flows of trigger t end. */
    for (uint32_t t = 0, i = 0; t < matrix->trigger_count; t++) {
        const struct trigger *trigger = &matrix->triggers[t];
        gw_workload_add_trigger(workload, trigger->kind == TRIGGER_BARRIER ? trigger->count : 1,
                                trigger->kind == TRIGGER_MULTISHOT);
        for (; i < first[t]; i++)
            gw_workload_add_start(workload, started[i]);
    }
    free(started);
    free(first);
}

static int generate(struct gw_workload *workload, const void *options, struct gw_workload_ctx *ctx)
{
    const struct matrix_cfg *cfg = options;
    struct matrix matrix = {.ctx = ctx, .connections_said = COUNT_MISSING};
    uint32_t first_flow = workload->flow_count;
    int error = gw_workload_open(&matrix.file, cfg->file, ctx);
    if (error)
        return error;
    error = read_file(&matrix);
    fclose(matrix.file.stream);
    if (!error)
        error = resolve(&matrix, workload->trigger_count);
    if (!error)
        append(&matrix, workload);
    if (!error)
        error = gw_workload_value(workload, first_flow, &cfg->worth, ctx);
    free(matrix.connections);
    free(matrix.triggers);
    return error;
}

static const struct gw_param params[] = {
    {.name = "file",
     .type = GW_PARAM_TEXT,
     .offset = offsetof(struct matrix_cfg, file),
     .initial = "",
     .help = "connection matrix, relative to the scenario's folder"},
    GW_MESSAGE_WORTH_PARAMS(struct matrix_cfg),
};

const struct gw_workload_kind gw_workload_matrix = {
    .algo = {.name = "matrix",
             .summary = "a list of flows in htsim's connection-matrix format",
             .source = "Broadcom/csg-htsim, sim/datacenter/connection_matrices",
             .params = params,
             .param_count = sizeof(params) / sizeof(params[0]),
             .cfg_size = sizeof(struct matrix_cfg)},
    .generate = generate,
};
