// cp.async: a copy is visible at once or when it is waited for, as the schedule likes; in the fixed order as late as
// it may be.
#include "fiber.h"

#include <stdlib.h>
#include <string.h>

namespace simt {

static void make_visible(const copy_t &copy) {
    touch(copy.to, (size_t)copy.bytes, WRITE);
    if (copy.size) memcpy(copy.to, copy.from, (size_t)copy.size);
    memset((char *)copy.to + copy.size, 0, (size_t)(copy.bytes - copy.size));
}

static void keep(const copy_t &copy) {
    fiber_t *f = current;
    if (f->copy_count == f->copy_room) {
        f->copy_room = f->copy_room ? 2 * f->copy_room : 16;
        f->copies = (copy_t *)realloc(f->copies, (size_t)f->copy_room * sizeof *f->copies);
        if (!f->copies) fail("no memory for copies");
    }
    f->copies[f->copy_count++] = copy;
}

void copy_async(uint32_t to, const void *from, int bytes, int size) {
    const copy_t copy = {shared_pointer(to, bytes, "cp.async"), from, bytes, size, current->groups};
    if (size < 0 || size > bytes) fail("cp.async of %d bytes reads %d", bytes, size);
    if (size && (uintptr_t)from % (unsigned)bytes) {
        fail("cp.async: %p is not a multiple of %d", from, bytes);
    }
    if (size && !device_reaches(from, (size_t)size)) {
        fail("cp.async reads %d bytes at %p, which are not in one allocation", size, from);
    }
    touch(copy.to, (size_t)bytes, WRITE);
    if (size) touch(from, (size_t)size, READ);
    if (chance(2)) {
        make_visible(copy);
    } else {
        keep(copy);
    }
}

void copy_commit() {
    current->groups++;
}

void copy_wait(int left) {
    fiber_t *f = current;
    int kept = 0;
    for (int i = 0; i < f->copy_count; i++) {
        if (f->copies[i].group < f->groups - left) {
            make_visible(f->copies[i]);
        } else {
            f->copies[kept++] = f->copies[i];
        }
    }
    f->copy_count = kept;
}

} // namespace simt
