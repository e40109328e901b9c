"""Corrections of released servers: a Java agent of our own, which changes the one wrong decision of a defect."""
