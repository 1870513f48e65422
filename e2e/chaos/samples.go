package chaos

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jobferry/jobferry/e2e/chaos/fleet"
)

// sampleEvery is how often the managers' metrics are recorded.
const sampleEvery = time.Second

// sample records the managers' metrics until the context ends. Each scrape has a heading: when, in
// milliseconds since 1970, and of which manager.
func sample(ctx context.Context, managers []*fleet.Manager, file *os.File) error {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case at := <-tick.C:
			for _, m := range managers {
				text, err := m.Metrics(ctx)
				if err != nil {
					continue // as a Prometheus would find
				}
				if _, err := fmt.Fprintf(file, "# SCRAPE %d %s\n%s", at.UnixMilli(), m.Name, text); err != nil {
					return err
				}
			}
		case <-ctx.Done():
			return nil
		}
	}
}
