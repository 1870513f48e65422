package helm4_test

import (
	"testing"

	"github.com/jobferry/jobferry/e2e/clients"
)

func TestMain(m *testing.M) { clients.Main(m) }
