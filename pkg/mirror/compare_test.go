package mirror_test

import "github.com/google/go-cmp/cmp"

func compare(want, got any) string { return cmp.Diff(want, got) }
