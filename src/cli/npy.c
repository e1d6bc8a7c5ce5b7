/*
 * NumPy's .npy files; see npy.h.
 *
 * The header is the text of a Python dictionary with the keys descr, fortran_order and shape, each
 * once and in any order; nothing else is accepted in it. It says where the data begins, and its
 * shape how long they are: a file of any other size is refused.
 */
#include "cli/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Elements are used as they lie in the file. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "needs a little-endian machine");

enum {
    PREFIX = 8, /* magic and version */
    HEADER_MAX = 65536,
    ALIGNMENT = 64, /* of the data in the file */
    TEXT_MAX = 64,
    PART_MAX = PATH_MAX + 48,
    PARTS_MAX = 100, /* names that somebody may have taken */
    /* Keys of the header, as bits. */
    HAS_DESCR = 1,
    HAS_ORDER = 2,
    HAS_SHAPE = 4,
    ALL_KEYS = 7,
};

static const struct {
    const char *descr;
    size_t size;
} types[] = {
    [GW_NPY_FLOAT32] = {"<f4", 4},
    [GW_NPY_FLOAT16] = {"<f2", 2},
    [GW_NPY_INT32] = {"<i4", 4},
};

size_t gw_npy_element(enum gw_npy_type type)
{
    return types[type].size;
}

__attribute__((format(printf, 2, 3))) static int fail(char *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, GW_NPY_ERROR_MAX, format, args);
    va_end(args);
    return -1;
}

/* The text that is still to be read. */
struct text {
    const char *at;
    const char *end;
};

static void skip_space(struct text *text)
{
    while (text->at < text->end && (*text->at == ' ' || *text->at == '\n' || *text->at == '\t'))
        text->at++;
}

static bool take(struct text *text, const char *token)
{
    skip_space(text);
    size_t size = strlen(token);
    if ((size_t)(text->end - text->at) < size || memcmp(text->at, token, size) != 0)
        return false;
    text->at += size;
    return true;
}

static bool take_string(struct text *text, char *string)
{
    skip_space(text);
    if (text->at == text->end || (*text->at != '\'' && *text->at != '"'))
        return false;
    char quote = *text->at++;
    size_t size = 0;
    for (; text->at < text->end && *text->at != quote; text->at++) {
        bool is_printable = *text->at >= ' ' && *text->at <= '~' && *text->at != '\\';
        if (size + 1 == TEXT_MAX || !is_printable)
            return false;
        string[size++] = *text->at;
    }
    string[size] = '\0';
    return text->at < text->end && *text->at++ == quote;
}

static bool take_size(struct text *text, uint64_t *size)
{
    skip_space(text);
    const char *begin = text->at;
    *size = 0;
    for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++)
        if (__builtin_mul_overflow(*size, (uint64_t)10, size) ||
            __builtin_add_overflow(*size, (uint64_t)(*text->at - '0'), size))
            return false;
    return text->at > begin;
}

static int take_shape(struct text *text, struct gw_npy *array, char *error)
{
    bool has_comma = true; /* (3) is a number, (3,) a tuple */
    array->dims = 0;
    if (!take(text, "("))
        return fail(error, "its shape is not a tuple");
    while (!take(text, ")")) {
        if (array->dims == GW_NPY_DIMS_MAX)
            return fail(error, "it has more than %d dimensions", GW_NPY_DIMS_MAX);
        if (!has_comma || !take_size(text, &array->shape[array->dims++]))
            return fail(error, "its shape is not a tuple of numbers");
        has_comma = take(text, ",");
    }
    return array->dims == 1 && !has_comma ? fail(error, "its shape is not a tuple") : 0;
}

/* What is wrong with the types that come by mistake. */
static const char *type_hint(const char *descr)
{
    if (*descr == '>')
        return ", which is big-endian";
    if (strchr(descr, 'O'))
        return ", which are Python objects";
    return "";
}

static int take_type(const char *descr, struct gw_npy *array, char *error)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(types[i].descr, descr) == 0) {
            array->type = (enum gw_npy_type)i;
            return 0;
        }
    return fail(error,
                "its elements are '%s'%s; float32 '<f4', float16 '<f2' and int32 '<i4' can be "
                "summed",
                descr, type_hint(descr));
}

/* The value of a key. Returns the key's bit of ALL_KEYS, or -1. */
static int take_entry(struct text *text, const char *key, struct gw_npy *array, char *error)
{
    char descr[TEXT_MAX];
    if (strcmp(key, "descr") == 0) {
        if (!take_string(text, descr))
            return fail(error, "its descr is not a text (a structured type?)");
        return take_type(descr, array, error) ? -1 : HAS_DESCR;
    }
    if (strcmp(key, "fortran_order") == 0) {
        array->is_fortran = take(text, "True");
        if (!array->is_fortran && !take(text, "False"))
            return fail(error, "its fortran_order is neither True nor False");
        return HAS_ORDER;
    }
    if (strcmp(key, "shape") == 0)
        return take_shape(text, array, error) ? -1 : HAS_SHAPE;
    return fail(error, "its header has the unknown key '%s'", key);
}

static int parse_dictionary(struct text text, struct gw_npy *array, char *error)
{
    static const char broken[] = "its header is not a dictionary of descr, fortran_order and shape";
    char key[TEXT_MAX];
    int keys = 0;
    bool has_comma = true;
    if (!take(&text, "{"))
        return fail(error, broken);
    while (!take(&text, "}")) {
        if (!has_comma || !take_string(&text, key) || !take(&text, ":"))
            return fail(error, broken);
        int bit = take_entry(&text, key, array, error);
        if (bit < 0)
            return -1;
        if (keys & bit)
            return fail(error, "its header has the key '%s' twice", key);
        keys |= bit;
        has_comma = take(&text, ",");
    }
    skip_space(&text);
    return keys == ALL_KEYS && text.at == text.end ? 0 : fail(error, broken);
}

/* Elements and bytes of a shape. */
static int measure(struct gw_npy *array, char *error)
{
    uint64_t bytes = types[array->type].size;
    for (uint32_t i = 0; i < array->dims; i++)
        if (__builtin_mul_overflow(bytes, array->shape[i], &bytes) || bytes > PTRDIFF_MAX)
            return fail(error, "its shape is larger than any memory");
    array->count = bytes / types[array->type].size;
    return 0;
}

int gw_npy_parse(const unsigned char *bytes, size_t size, struct gw_npy *array, size_t *begin,
                 char error[GW_NPY_ERROR_MAX])
{
    if (size < PREFIX || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return fail(error, "it is not an .npy file");
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)
        return fail(error, "it is of .npy format %u.%u; 1.0, 2.0 and 3.0 can be read", bytes[6],
                    bytes[7]);
    size_t field = bytes[6] == 1 ? 2 : 4, length = 0;
    if (size < PREFIX + field)
        return fail(error, "it ends within its header, after %zu bytes", size);
    for (size_t i = field; i-- > 0;)
        length = length << 8 | bytes[PREFIX + i];
    *begin = PREFIX + field + length;
    if (length > HEADER_MAX)
        return fail(error, "its header is %zu bytes long; %d at most", length, HEADER_MAX);
    if (*begin > size)
        return fail(error, "it ends within its header, after %zu of %zu bytes", size, *begin);
    struct text text = {(const char *)bytes + PREFIX + field, (const char *)bytes + *begin};
    memset(array, 0, sizeof(*array));
    return parse_dictionary(text, array, error) ? -1 : measure(array, error);
}

/* Reads `size` bytes, or as many as there are. */
static ssize_t read_all(int fd, void *bytes, size_t size)
{
    size_t at = 0;
    while (at < size) {
        ssize_t got = read(fd, (char *)bytes + at, size - at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        at += (size_t)got;
    }
    return (ssize_t)at;
}

static int read_data(int fd, uint64_t file_size, size_t begin, struct gw_npy *array, char *error)
{
    size_t bytes = array->count * types[array->type].size;
    uint64_t have = file_size - begin;
    if (have < bytes)
        return fail(error, "it is truncated: %llu bytes of data, %zu wanted",
                    (unsigned long long)have, bytes);
    if (bytes < have)
        return fail(error, "it has %llu bytes behind its data", (unsigned long long)(have - bytes));
    array->data = malloc(bytes ? bytes : 1);
    if (!array->data)
        return fail(error, "out of memory for %zu bytes", bytes);
    ssize_t got = lseek(fd, (off_t)begin, SEEK_SET) < 0 ? -1 : read_all(fd, array->data, bytes);
    if (got == (ssize_t)bytes)
        return 0;
    int reason = got < 0 ? errno : EIO; /* somebody cut it off while it was read */
    gw_npy_free(array);
    return fail(error, "cannot be read: %s", strerror(reason));
}

static int read_open(int fd, struct gw_npy *array, char *error)
{
    struct stat info;
    size_t begin;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return fail(error, "it is not a regular file");
    unsigned char *header = malloc(HEADER_MAX + PREFIX + 4);
    ssize_t size = header ? read_all(fd, header, HEADER_MAX + PREFIX + 4) : -1;
    int code = size < 0 ? fail(error, "cannot be read: %s", strerror(errno))
                        : gw_npy_parse(header, (size_t)size, array, &begin, error);
    free(header);
    return code ? code : read_data(fd, (uint64_t)info.st_size, begin, array, error);
}

int gw_npy_read(const char *path, struct gw_npy *array, char error[GW_NPY_ERROR_MAX])
{
    char why[GW_NPY_ERROR_MAX];
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a pipe must not keep us waiting */
    if (fd < 0)
        return fail(error, "%.200s: %s", path, strerror(errno));
    int code = read_open(fd, array, why);
    close(fd);
    return code ? fail(error, "%.200s: %.300s", path, why) : 0;
}

/* The text of a shape, as Python writes it. */
static void format_shape(const struct gw_npy *array, char *text, size_t size)
{
    size_t at = (size_t)snprintf(text, size, "(");
    for (uint32_t i = 0; i < array->dims && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, i ? ", %llu" : "%llu",
                               (unsigned long long)array->shape[i]);
    if (at < size)
        snprintf(text + at, size - at, array->dims == 1 ? ",)" : ")");
}

static bool write_all(int fd, const void *bytes, size_t size)
{
    size_t at = 0;
    while (at < size) {
        ssize_t put = write(fd, (const char *)bytes + at, size - at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put == 0)
            errno = ENOSPC;
        if (put <= 0)
            return false;
        at += (size_t)put;
    }
    return true;
}

static bool write_array(int fd, const struct gw_npy *array)
{
    char shape[24 * GW_NPY_DIMS_MAX], header[sizeof(shape) + 256];
    format_shape(array, shape, sizeof(shape));
    int size = snprintf(header + 10, sizeof(header) - 10,
                        "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }",
                        types[array->type].descr, array->is_fortran ? "True" : "False", shape);
    size_t total = (10 + (size_t)size + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    memset(header + 10 + size, ' ', total - 10 - (size_t)size);
    header[total - 1] = '\n';
    memcpy(header, "\x93NUMPY\x01\x00", PREFIX);
    header[8] = (char)((total - 10) & 255);
    header[9] = (char)((total - 10) >> 8);
    return write_all(fd, header, total) &&
           write_all(fd, array->data, array->count * types[array->type].size);
}

/*
 * Makes a file beside `target` that was not there before, and writes its name to `part`: in a
 * folder of many, somebody may have put a link in its place. Returns -1 with errno set.
 */
static int open_part(const char *target, char part[PART_MAX])
{
    int fd = -1;
    for (uint32_t i = 0; i < PARTS_MAX && fd < 0; i++) {
        snprintf(part, PART_MAX, "%s.part%ld.%u", target, (long)getpid(), i);
        fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            return -1;
    }
    return fd;
}

/* Writes a part and makes it `target`. On failure errno is set and there is no part. */
static bool write_and_rename(const char *target, const struct gw_npy *array)
{
    char part[PART_MAX];
    int fd = open_part(target, part);
    if (fd < 0)
        return false;
    /* Some file systems find out only now that they are full. */
    bool is_written = write_array(fd, array) && fsync(fd) == 0;
    int reason = errno;
    close(fd);
    if (is_written && rename(part, target) == 0)
        return true;
    if (is_written)
        reason = errno;
    unlink(part);
    errno = reason;
    return false;
}

/* Finds what is to be replaced: a link stays, and a device must not be. */
static int find_target(const char *path, char target[PATH_MAX], char *error)
{
    struct stat info;
    if (!*path)
        return fail(error, "cannot write a file without a name");
    if (!realpath(path, target) && snprintf(target, PATH_MAX, "%s", path) >= PATH_MAX)
        return fail(error, "cannot write %.200s...: the name is too long", path);
    if (stat(target, &info) == 0 && !S_ISREG(info.st_mode))
        return fail(error, "cannot write %.200s: it is not a regular file", path);
    return 0;
}

int gw_npy_try_write(const char *path, char error[GW_NPY_ERROR_MAX])
{
    char target[PATH_MAX], part[PART_MAX];
    if (find_target(path, target, error) != 0)
        return -1;
    int fd = open_part(target, part);
    if (fd < 0)
        return fail(error, "cannot write %.200s: %s", path, strerror(errno));
    close(fd);
    unlink(part);
    return 0;
}

int gw_npy_write(const char *path, const struct gw_npy *array, char error[GW_NPY_ERROR_MAX])
{
    char target[PATH_MAX];
    if (find_target(path, target, error) != 0)
        return -1;
    if (write_and_rename(target, array))
        return 0;
    return fail(error, "cannot write %.200s: %s", path, strerror(errno));
}

bool gw_npy_is_alike(const struct gw_npy *a, const struct gw_npy *b, char error[GW_NPY_ERROR_MAX])
{
    char shapes[2][GW_NPY_ERROR_MAX / 4];
    if (a->type != b->type) {
        fail(error, "elements are '%s' against '%s'", types[a->type].descr, types[b->type].descr);
        return false;
    }
    if (a->dims != b->dims || memcmp(a->shape, b->shape, a->dims * sizeof(a->shape[0])) != 0) {
        format_shape(a, shapes[0], sizeof(shapes[0]));
        format_shape(b, shapes[1], sizeof(shapes[1]));
        fail(error, "shape is %s against %s", shapes[0], shapes[1]);
        return false;
    }
    if (a->is_fortran != b->is_fortran) {
        fail(error, "one is in Fortran order, the other is not");
        return false;
    }
    return true;
}

void gw_npy_free(struct gw_npy *array)
{
    free(array->data);
    array->data = NULL;
}
