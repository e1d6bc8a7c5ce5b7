/*
 * Numbers of a daemon for Prometheus; see metrics.h. The text is version 0.0.4 of the exposition
 * format: one line per number, all lines of one name together.
 */
#include "cli/metrics.h"

#include <microhttpd.h>
#include <pthread.h>
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
};

struct gw_metrics {
    struct MHD_Daemon *http;
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
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **request)
{
    struct gw_metrics *metrics = context;
    (void)version, (void)upload, (void)upload_size, (void)request;
    if (strcmp(method, "GET") != 0)
        return respond(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "", 0);
    if (strcmp(url, "/metrics") != 0)
        return respond(connection, MHD_HTTP_NOT_FOUND, "", 0);
    pthread_mutex_lock(&metrics->lock);
    enum MHD_Result result =
        respond(connection, MHD_HTTP_OK, metrics->text ? metrics->text : "", metrics->size);
    pthread_mutex_unlock(&metrics->lock);
    return result;
}

int gw_metrics_open(const char *listen, struct gw_metrics **result, char *error)
{
    struct gw_sock_addr addr;
    int code = gw_sock_addr_resolve(listen, &addr, error);
    if (code)
        return code;
    struct gw_metrics *metrics = calloc(1, sizeof(*metrics));
    if (!metrics)
        return gw_net_fail(error, GW_ERR_NO_MEMORY, "out of memory");
    pthread_mutex_init(&metrics->lock, NULL);
    unsigned flags =
        MHD_USE_INTERNAL_POLLING_THREAD | (addr.storage.ss_family == AF_INET6 ? MHD_USE_IPv6 : 0);
    metrics->http =
        MHD_start_daemon(flags, gw_sock_addr_port(&addr), NULL, NULL, answer, metrics,
                         MHD_OPTION_SOCK_ADDR, &addr.storage, MHD_OPTION_CONNECTION_LIMIT,
                         (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
                         MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u, MHD_OPTION_END);
    if (!metrics->http) {
        gw_metrics_close(metrics);
        return gw_net_fail(error, GW_ERR_SYSTEM, "cannot serve metrics at %s", listen);
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

/* The numbers of all jobs, name by name. */
static void write_jobs(FILE *out, const char *prefix, json_t *jobs)
{
    json_t *first = json_array_get(jobs, 0), *value, *job;
    const char *key;
    size_t i;
    json_int_t number;
    json_object_foreach(first, key, value)
    {
        json_array_foreach(jobs, i, job)
        {
            if (number_of(json_object_get(job, key), &number))
                fprintf(out, "%s_%s{job=\"%s\"} %lld\n", prefix, key,
                        json_string_value(json_object_get(job, "job")), (long long)number);
        }
    }
}

/* A list of numbers is one by class. */
static void write_classes(FILE *out, const char *name, json_t *list)
{
    json_t *value;
    size_t i;
    json_int_t number;
    json_array_foreach(list, i, value)
    {
        if (number_of(value, &number))
            fprintf(out, "%s{class=\"%zu\"} %lld\n", name, i, (long long)number);
    }
}

static void write_object(FILE *out, const char *prefix, json_t *object)
{
    json_t *value;
    const char *key;
    json_int_t number;
    json_object_foreach(object, key, value)
    {
        char name[NAME_MAX_BYTES];
        snprintf(name, sizeof(name), "%s_%s", prefix, key);
        if (json_is_object(value))
            write_object(out, name, value);
        else if (json_is_array(value) && strcmp(key, "jobs") == 0)
            write_jobs(out, name, value);
        else if (json_is_array(value))
            write_classes(out, name, value);
        else if (number_of(value, &number))
            fprintf(out, "%s %lld\n", name, (long long)number);
    }
}

void gw_metrics_set(struct gw_metrics *metrics, const char *prefix, json_t *status)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return; /* the snapshot stays as it is */
    write_object(out, prefix, status);
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
