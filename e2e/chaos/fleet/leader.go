package fleet

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"
)

// Leader is the manager that leads, by its own metrics; nil: none does now, or it doesn't answer.
func (f *Fleet) Leader(ctx context.Context) *Manager {
	for _, m := range f.Managers {
		if m.leads(ctx) {
			return m
		}
	}
	return nil
}

func (m *Manager) leads(ctx context.Context) bool {
	text, err := m.Metrics(ctx)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "leader_election_master_status{") && strings.HasSuffix(strings.TrimSpace(line), " 1") {
			return err == nil
		}
	}
	return false
}

// Metrics are what the manager serves now, as text.
func (m *Manager) Metrics(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.metrics+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}
