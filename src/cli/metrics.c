/*
 * Numbers of a daemon for Prometheus; see metrics.h. The text is version 0.0.4 of the exposition
 * format: one line per number, all lines of one name together.
 */
#include "cli/metrics.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "net/net_error.h"
#include "net/sock_addr.h"

enum {
    CONNECTIONS_MAX = 16,
    IDLE_S = 10, /* a connection that asks nothing is closed */
    NAME_MAX_BYTES = 128,
    DIGEST_SIZE = 32,
};

struct gw_metrics {
    struct MHD_Daemon *http;
    bool has_token;
    uint8_t token[DIGEST_SIZE]; /* its digest */
    pthread_mutex_t lock;
    char *text; /* the snapshot; NULL: none yet */
    size_t size;
};

static enum MHD_Result respond(struct MHD_Connection *connection, unsigned status, const char *text,
                               size_t size)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, "Content-Type", "text/plain; version=0.0.4");
    if (status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

/* Of equal length whatever the text is, so that a comparison tells nothing of it. */
static void digest_of(const char *text, uint8_t digest[DIGEST_SIZE])
{
    crypto_generichash(digest, DIGEST_SIZE, (const uint8_t *)text, strlen(text), NULL, 0);
}

/* Whether who asks has shown the token, or need not. */
static bool may_ask(const struct gw_metrics *metrics, struct MHD_Connection *connection)
{
    static const char scheme[] = "Bearer ";
    uint8_t digest[DIGEST_SIZE];
    const char *shown =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    if (!metrics->has_token)
        return true;
    if (!shown || strncmp(shown, scheme, strlen(scheme)) != 0)
        return false;
    digest_of(shown + strlen(scheme), digest);
    return sodium_memcmp(digest, metrics->token, sizeof(digest)) == 0;
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **request)
{
    struct gw_metrics *metrics = context;
    (void)version, (void)upload, (void)upload_size, (void)request;
    if (strcmp(method, "GET") != 0)
        return respond(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "", 0);
    if (!may_ask(metrics, connection))
        return respond(connection, MHD_HTTP_UNAUTHORIZED, "", 0);
    if (strcmp(url, "/metrics") != 0)
        return respond(connection, MHD_HTTP_NOT_FOUND, "", 0);
    pthread_mutex_lock(&metrics->lock);
    enum MHD_Result result =
        respond(connection, MHD_HTTP_OK, metrics->text ? metrics->text : "", metrics->size);
    pthread_mutex_unlock(&metrics->lock);
    return result;
}

int gw_metrics_open(const char *listen, const char *token, struct gw_metrics **result, char *error)
{
    struct gw_sock_addr addr;
    int code = gw_sock_addr_resolve(listen, &addr, error);
    if (code)
        return code;
    struct gw_metrics *metrics = calloc(1, sizeof(*metrics));
    if (!metrics)
        return gw_net_fail(error, GW_ERR_NO_MEMORY, "out of memory");
    pthread_mutex_init(&metrics->lock, NULL);
    metrics->has_token = token != NULL;
    if (token)
        digest_of(token, metrics->token);
    unsigned flags =
        MHD_USE_INTERNAL_POLLING_THREAD | (addr.storage.ss_family == AF_INET6 ? MHD_USE_IPv6 : 0);
    metrics->http = MHD_start_daemon(
        flags, gw_sock_addr_port(&addr), NULL, NULL, answer, metrics, MHD_OPTION_SOCK_ADDR,
        &addr.storage, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_END);
    if (!metrics->http) {
        int reason = errno;
        gw_metrics_close(metrics);
        return gw_net_fail(error, GW_ERR_SYSTEM, "cannot serve metrics at %s: %s", listen,
                           strerror(reason));
    }
    *result = metrics;
    return GW_OK;
}

void gw_metrics_close(struct gw_metrics *metrics)
{
    if (metrics->http)
        MHD_stop_daemon(metrics->http);
    pthread_mutex_destroy(&metrics->lock);
    free(metrics->text);
    free(metrics);
}

/* The number of a value; false: it has none. */
static bool number_of(const json_t *value, json_int_t *number)
{
    *number = json_is_true(value) ? 1 : json_integer_value(value);
    return json_is_integer(value) || json_is_boolean(value);
}

/* What is written, and how. */
struct writer {
    FILE *out;
    bool has_names; /* numbers of each job and tenant, with its own */
};

static void write_number(const struct writer *writer, const char *name, const char *label,
                         const char *value, json_int_t number)
{
    if (label)
        fprintf(writer->out, "%s{%s=\"%s\"} %lld\n", name, label, value, (long long)number);
    else
        fprintf(writer->out, "%s %lld\n", name, (long long)number);
}

/* One number of all objects of a list: each one's, or their sum. */
static void write_member(const struct writer *writer, const char *name, const char *key,
                         const char *label, json_t *list)
{
    json_t *object;
    size_t i;
    json_int_t number, sum = 0;
    json_array_foreach(list, i, object)
    {
        if (!number_of(json_object_get(object, key), &number))
            return;
        sum += number;
        if (writer->has_names)
            write_number(writer, name, label, json_string_value(json_object_get(object, label)),
                         number);
    }
    if (!writer->has_names)
        write_number(writer, name, NULL, NULL, sum);
}

/* The numbers of all objects of a list, name by name; the first member says whose they are. */
static void write_list(const struct writer *writer, const char *prefix, json_t *list)
{
    json_t *first = json_array_get(list, 0), *value;
    const char *key, *label = json_object_iter_key(json_object_iter(first));
    json_object_foreach(first, key, value)
    {
        char name[2 * NAME_MAX_BYTES];
        snprintf(name, sizeof(name), "%s_%s", prefix, key);
        if (writer->has_names || strcmp(key, "epoch") != 0) /* a sum of epochs is none */
            write_member(writer, name, key, label, list);
    }
}

/* A list of numbers is one by class. */
static void write_classes(const struct writer *writer, const char *name, json_t *list)
{
    json_t *value;
    size_t i;
    json_int_t number;
    json_array_foreach(list, i, value)
    {
        char class[NAME_MAX_BYTES];
        snprintf(class, sizeof(class), "%zu", i);
        if (number_of(value, &number))
            write_number(writer, name, "class", class, number);
    }
}

static void write_object(const struct writer *writer, const char *prefix, json_t *object)
{
    json_t *value;
    const char *key;
    json_int_t number;
    json_object_foreach(object, key, value)
    {
        char name[NAME_MAX_BYTES];
        snprintf(name, sizeof(name), "%s_%s", prefix, key);
        if (json_is_object(value))
            write_object(writer, name, value);
        else if (json_is_object(json_array_get(value, 0)))
            write_list(writer, name, value);
        else if (json_is_array(value))
            write_classes(writer, name, value);
        else if (number_of(value, &number))
            write_number(writer, name, NULL, NULL, number);
    }
}

void gw_metrics_set(struct gw_metrics *metrics, const char *prefix, json_t *status)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return; /* the snapshot stays as it is */
    write_object(&(struct writer){out, metrics->has_token}, prefix, status);
    if (fclose(out) != 0) {
        free(text);
        return;
    }
    pthread_mutex_lock(&metrics->lock);
    free(metrics->text);
    metrics->text = text;
    metrics->size = size;
    pthread_mutex_unlock(&metrics->lock);
}
