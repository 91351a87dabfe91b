/* What the C tests have in common: a check that says where it failed. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "metaroce.h"

#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                 \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

/* A call that must return this; says what it returned instead. */
#define EXPECT(expected, call)                                                             \
    do {                                                                                   \
        int32_t got_ = (call);                                                             \
        if (got_ != (int32_t)(expected)) {                                                 \
            printf("%s:%d: %s gave %ld (%s), not %ld\n", __FILE__, __LINE__, #call,        \
                   (long)got_, mr_error_string(got_), (long)(expected));                   \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

#endif
