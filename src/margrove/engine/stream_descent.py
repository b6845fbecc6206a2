"""placeholder"""
class BlockDescent: pass
