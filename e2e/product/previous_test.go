package product

import (
	"errors"
	"strings"
	"testing"
)

// A release that somebody asks for must be there: upgrades from it aren't silently left out.
func TestPreviousRefusesAnUnknownRelease(t *testing.T) {
	t.Setenv(previousEnv, "v999.0.0")
	_, err := Previous(t.Context())
	if err == nil || errors.Is(err, ErrNoHistory) || !strings.Contains(err.Error(), "JOBFERRY_PREVIOUS=v999.0.0 is no tag or commit") {
		t.Errorf("%v", err)
	}
}
