// Package memstats reads what a manager that serves its profiles says of its memory.
package memstats

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Read returns the runtime.MemStats of a manager that serves its profiles at an address, by their
// fields, after two collections: pools keep what they hold through the first one.
func Read(ctx context.Context, address string) (map[string]int64, error) {
	const collected = "heap?gc=1&debug=1"
	if _, err := profileText(ctx, address, collected); err != nil {
		return nil, err
	}
	text, err := profileText(ctx, address, collected)
	if err != nil {
		return nil, err
	}
	stats := map[string]int64{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20) // some fields are arrays
	for lines.Scan() {
		name, value, found := strings.Cut(strings.TrimPrefix(lines.Text(), "# "), " = ")
		value, _, _ = strings.Cut(value, " / ") // in use / taken from the system
		if n, err := strconv.ParseInt(value, 10, 64); found && err == nil {
			stats[name] = n
		}
	}
	if stats["HeapAlloc"] == 0 {
		return nil, fmt.Errorf("%s doesn't say how large the heap is", address)
	}
	return stats, lines.Err()
}

// Goroutines is how many goroutines such a manager has.
func Goroutines(ctx context.Context, address string) (n int, err error) {
	text, err := profileText(ctx, address, "goroutine?debug=1")
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscanf(string(text), "goroutine profile: total %d", &n)
	return n, err
}

// profileText is a profile of such a manager as text.
func profileText(ctx context.Context, address, profile string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/debug/pprof/"+profile, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", request.URL, response.Status)
	}
	return io.ReadAll(response.Body)
}
