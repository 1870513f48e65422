package costtest

import (
	"strings"
	"testing"
)

var sink []byte

func TestOf(t *testing.T) {
	const size = 4 << 10
	text := textOf("[", "ab", "]", size)
	if len(text) < size-1 || !strings.HasPrefix(text, "[abab") || !strings.HasSuffix(text, "abab]") {
		t.Errorf("%d bytes, %.10q", len(text), text)
	}
	var nest func(text string) int
	nest = func(text string) int {
		if text == "" {
			return 0
		}
		var frame [64]byte
		return nest(text[1:]) + int(frame[len(text)%len(frame)]) + 1
	}
	for name, c := range map[string]struct {
		read        func(text string)
		least, most uint64
	}{
		"nothing":         {func(string) {}, 0, size},
		"a copy":          {func(text string) { sink = []byte(text) }, size / 2, 4 * size},
		"a copy per byte": {func(text string) { sink = make([]byte, len(text)*len(text)) }, size * size / 2, 4 * size * size},
		"a deep stack":    {func(text string) { nest(text) }, 64 * size, 4 << 20},
	} {
		cost := Of(func() { c.read(text) })
		for i := 0; i < 5 && cost > c.most; i++ { // others allocate, too
			cost = Of(func() { c.read(text) })
		}
		if cost < c.least || cost > c.most {
			t.Errorf("%s: %d bytes, want %d to %d", name, cost, c.least, c.most)
		}
	}
}
