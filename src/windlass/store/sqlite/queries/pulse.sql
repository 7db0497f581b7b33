-- When anybody last kept a lease alive.
SELECT boot, at FROM windlass_pulse
