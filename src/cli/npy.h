/*
 * NumPy's .npy files: one array each, of float32, float16 or int32, of any shape.
 *
 * Format 1.0 to 3.0 is read, 1.0 is written (numpy.lib.format). Data in Fortran order stays so:
 * sums are element by element.
 */
#ifndef GW_CLI_NPY_H
#define GW_CLI_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GW_NPY_DIMS_MAX = 64, /* as in NumPy 2 */
    GW_NPY_ERROR_MAX = 512,
};

enum gw_npy_type {
    GW_NPY_FLOAT32,
    GW_NPY_FLOAT16,
    GW_NPY_INT32,
};

struct gw_npy {
    enum gw_npy_type type;
    bool is_fortran;
    uint32_t dims;
    uint64_t shape[GW_NPY_DIMS_MAX];
    uint64_t count; /* elements */
    void *data;     /* count of them; to be freed with gw_npy_free() */
};

/* Bytes of one element. */
size_t gw_npy_element(enum gw_npy_type type);

/* Reads a file. Returns 0, or -1 with one line in `error` that names the file and what is wrong. */
int gw_npy_read(const char *path, struct gw_npy *array, char error[GW_NPY_ERROR_MAX]);

/*
 * Reads the header in `bytes`, of which `size` are there, and stores where the data begins. As
 * above, without the name of the file.
 */
int gw_npy_parse(const unsigned char *bytes, size_t size, struct gw_npy *array, size_t *begin,
                 char error[GW_NPY_ERROR_MAX]);

/*
 * Writes a file, whole or not at all: under another name beside it, which then becomes this one. As
 * above.
 */
int gw_npy_write(const char *path, const struct gw_npy *array, char error[GW_NPY_ERROR_MAX]);

/* Whether a file could be begun there, which leaves nothing. As above. */
int gw_npy_try_write(const char *path, char error[GW_NPY_ERROR_MAX]);

/* Whether type, order and shape are the same; if not, says how they differ. */
bool gw_npy_is_alike(const struct gw_npy *a, const struct gw_npy *b, char error[GW_NPY_ERROR_MAX]);

void gw_npy_free(struct gw_npy *array);

#endif
