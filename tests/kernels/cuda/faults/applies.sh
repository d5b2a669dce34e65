#!/bin/sh
# applies.sh ROOT PYTHON: every planted fault still fits the kernel that it is planted in, and without a fault the copy is that
# kernel (inert.py); faults that do not fit are named.
set -eu
root=$1
python=$2
faults=$root/tests/kernels/cuda/faults
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
for patch in "$faults"/*/*.patch; do
    file=$(sed -n 's|^--- a/||p' "$patch")
    "$faults/apply.sh" "$root" "$patch" "$work/copy" || status=1
    "$python" "$faults/inert.py" "$root/$file" "$work/copy" || status=1
done
[ $status = 0 ] || exit 1

# Lines beside a fault that are others; a fault that is there without being chosen.
patch=$faults/sum_squares/sum_squares_cuda.cu.patch
file=$root/kernels/sum_squares/sum_squares_cuda.cu
sed 's/^ \(.*double own = 0\)/ \1 + 0/' "$patch" >"$work/other.patch"
if "$faults/apply.sh" "$root" "$work/other.patch" "$work/copy" 2>"$work/said"; then
    echo "a patch that does not fit is taken" >&2
    exit 1
fi
grep -q "other.patch no longer applies to kernels/sum_squares/sum_squares_cuda.cu" "$work/said"
cmp "$file" "$work/copy"
sed 's/if (planted/if (!planted/' "$patch" >"$work/other.patch"
"$faults/apply.sh" "$root" "$work/other.patch" "$work/copy"
if "$python" "$faults/inert.py" "$file" "$work/copy" 2>"$work/said"; then
    echo "a fault that is always there is taken" >&2
    exit 1
fi
grep -q "its copy without a fault has" "$work/said"
