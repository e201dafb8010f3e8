# out_of_memory.sh ARGUMENTS…: runs presk with its first allocation failing, then a later one, and
# so on until all are granted. Each must end with a message and exit status 1, and leave no file
# that is half written. Steps grow by an eighth, since some builds allocate thousands of times.
n=1
while true; do
  PRESK_FAIL_ALLOCATION=$n presk "$@" > said 2> why
  status=$?
  test $status = 0 && break
  if test $status != 1 || ! grep -q 'error\[E6001\]: out of memory: [0-9]* bytes' why; then
    echo "allocation $n: exit status $status"
    cat why
    exit 1
  fi
  ls | grep '\.part$' && exit 1
  n=$((n + 1 + n / 8))
done
test $n -gt 2 && echo "all granted"
