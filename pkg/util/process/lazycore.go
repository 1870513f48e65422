package process

import (
	"slices"

	"go.uber.org/zap/zapcore"
)

// lazyCore encodes the values of a logger when it writes a line: each reconcile makes a logger
// twice, and most of them write none.
type lazyCore struct {
	zapcore.Core
	values []zapcore.Field
}

func withLazyValues(core zapcore.Core) zapcore.Core { return &lazyCore{Core: core} }

// With returns a core with further values.
func (c *lazyCore) With(values []zapcore.Field) zapcore.Core {
	return &lazyCore{Core: c.Core, values: slices.Concat(c.values, values)}
}

// Check adds this core to those that write a line, if the core that it wraps would write it.
func (c *lazyCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Core.Check(entry, nil) == nil {
		return checked
	}
	return checked.AddCore(entry, c)
}

// Write writes a line with the logger's values.
func (c *lazyCore) Write(entry zapcore.Entry, values []zapcore.Field) error {
	return c.Core.Write(entry, slices.Concat(c.values, values))
}
