package fleet

import (
	"bufio"
	"context"
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
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.metrics+"/metrics", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "leader_election_master_status{") && strings.HasSuffix(line, " 1") {
			return true
		}
	}
	return false
}
